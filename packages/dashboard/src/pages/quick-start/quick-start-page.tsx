import { NotFoundError } from '@purser/sdk'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { useMay, usePurser, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Card, Page, Skeleton } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { walletToPay } from '../payments/make-test-payment.ts'
import { FirstPayment } from './first-payment.tsx'
import { type SnippetName, snippetLabels, snippetNames, snippetOf } from './snippets.ts'

const route = getRouteApi('/shell/quick-start')

/** The first payment with one click, then the code that takes payments, with the reader's own key and wallet in it. */
export function QuickStartPage() {
  return (
    <Page title="Quick start" state="Watch a payment settle, then take payments with your own server.">
      <div className="grid items-start gap-5 lg:grid-cols-steps">
        <FirstPayment />
        <YourServer />
      </div>
    </Page>
  )
}

function YourServer() {
  const { environment } = useWorkspace()
  const purser = usePurser()
  const chosen = chosenName(route.useSearch().with)
  const wallet = useQuery({
    queryKey: ['wallets', 'to-pay', environment],
    queryFn: () => walletToPay(purser),
  })
  const make = useMutation({
    mutationFn: () =>
      purser.organisations.apiKeys.create({
        name: 'Quick start',
        environment,
        scopes: ['read', 'payments', 'vaults'],
      }),
  })
  const apiKey = make.data?.key ?? `svc_${environment}_sk_…`
  const tabs = snippetNames.map((name) => ({
    label: snippetLabels[name],
    search: { with: name },
    isChosen: name === chosen,
  }))
  const { note, code } = snippetOf(chosen, {
    apiKey,
    environment,
    baseUrl: location.origin,
    walletId: wallet.data ?? 'byw_…',
  })
  return (
    <Card title="Your server">
      <div className="flex flex-col gap-4">
        {wallet.error !== null && <NoWallet error={wallet.error} onRetry={() => wallet.refetch()} />}
        <KeyLine isMade={make.data !== undefined} isBusy={make.isPending} onMake={() => make.mutate()} />
        {make.error !== null && <ErrorBlock error={make.error} onRetry={() => make.mutate()} />}
        <Tabs label="With" to="/quick-start" tabs={tabs} />
        {wallet.isPending ? (
          <Skeleton lines={10} />
        ) : (
          <>
            <p className="text-ink-2">
              {note} The guide says{' '}
              <a href="/docs/quick-start" className="text-accent-text underline">
                how to install the SDK
              </a>
              .
            </p>
            <CodeBlock text={code} label="Copy the code" tall />
          </>
        )}
      </div>
    </Card>
  )
}

/** An organisation without a wallet has only not begun. Anything else is a fault. */
function NoWallet({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (!(error instanceof NotFoundError)) return <ErrorBlock error={error} onRetry={onRetry} />
  return (
    <p className="text-ink-2">
      The code needs a wallet that is paid.{' '}
      <Link to="/wallets" search={{ kind: 'own' }} className="text-accent-text underline">
        Add one
      </Link>{' '}
      first.
    </p>
  )
}

/** Explains which key the code contains. The value exists on this page only and is lost when the page is left. */
function KeyLine({ isMade, isBusy, onMake }: { isMade: boolean; isBusy: boolean; onMake: () => void }) {
  const { environment } = useWorkspace()
  const mayMake = useMay('admin')
  if (isMade)
    return (
      <p role="status" className="rounded-control bg-settled-soft px-3 py-2">
        The code contains your new key. It is shown until you leave this page, and never again.
      </p>
    )
  return (
    <div className="flex flex-wrap items-center justify-between gap-3">
      <p className="min-w-0 flex-1 basis-60 text-ink-2">
        {mayMake
          ? 'The code needs an API key. This key can accept payments but cannot move money out.'
          : 'Insert one of your keys. Admins create keys.'}
      </p>
      {mayMake && (
        <Button busy={isBusy} onClick={onMake}>
          <KeyRound aria-hidden /> Create a {environment} key
        </Button>
      )}
    </div>
  )
}

function chosenName(text: string | undefined): SnippetName {
  return snippetNames.find((name) => name === text) ?? 'express'
}
