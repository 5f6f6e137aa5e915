import { useQuery } from '@tanstack/react-query'
import { useWorkspace } from '../../api/context.ts'
import { Page } from '../../ui/page.tsx'
import { Browsers } from './browsers.tsx'
import { Invitations } from './invitations.tsx'
import { Passkeys } from './passkeys.tsx'
import { PasswordCard } from './password.tsx'
import { passkeysQuery } from './queries.ts'

/** The page of the signed-in person: their invitations, passkeys, password and signed-in browsers. */
export function AccountPage() {
  const { account } = useWorkspace()
  const passkeys = useQuery(passkeysQuery)
  return (
    <Page
      title="Your account"
      state={
        <>
          Signed in as <span className="font-medium break-all text-ink">{account.email}</span>
          {passkeys.data?.length === 0 && '. Add a passkey, so that you need no link to sign in again'}.
        </>
      }
    >
      <div className="flex max-w-190 flex-col gap-5">
        <Invitations invitations={account.invitations} />
        <Passkeys />
        <PasswordCard email={account.email} />
        <Browsers />
      </div>
    </Page>
  )
}
