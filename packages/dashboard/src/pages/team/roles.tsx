import type { Role } from '@purser/sdk'
import { Check } from 'lucide-react'
import { classes } from '../../ui/classes.ts'
import { sentenceCase } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'

/** Roles from the one that may do everything to the one that may only read, with what each may do. */
const roles: readonly { readonly role: Role; readonly may: string }[] = [
  { role: 'owner', may: 'Everything, and can add owners.' },
  {
    role: 'admin',
    may: 'Everything but owners: keys, webhooks, spend policies, approvals and the team.',
  },
  {
    role: 'member',
    may: 'Works with payments, vaults, wallets, transfers and withdrawals, within the spend policies.',
  },
  { role: 'viewer', may: 'Reads everything and changes nothing.' },
]

const acts: readonly { readonly act: string; readonly least: Role }[] = [
  { act: 'Read payments, vaults, wallets, the team and the audit log', least: 'viewer' },
  { act: 'Create vaults and wallets, take payments, send money within the spend policies', least: 'member' },
  { act: 'Approve transfers, payments and withdrawals that need it', least: 'admin' },
  { act: 'Change keys, webhooks and spend policies', least: 'admin' },
  { act: 'Invite, remove and change admins, members and viewers', least: 'admin' },
  { act: 'Add and remove owners', least: 'owner' },
]

/** A choice of one role, each with what it may do. Only an owner makes owners. */
export function RoleChoice({
  value,
  onChange,
  mayMakeOwners,
}: {
  value: Role
  onChange: (role: Role) => void
  mayMakeOwners: boolean
}) {
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">Role</legend>
      {roles
        .filter(({ role }) => role !== 'owner' || mayMakeOwners)
        .map(({ role, may }) => (
          <label
            key={role}
            className={classes(
              'flex cursor-pointer items-start gap-2.5 rounded-control border px-3 py-2',
              role === value ? 'border-accent bg-accent-soft' : 'border-line hover:border-line-strong',
            )}
          >
            <input
              type="radio"
              name="role"
              value={role}
              checked={role === value}
              onChange={() => onChange(role)}
              className="mt-1 accent-accent"
            />
            <span className="min-w-0">
              <span className="block font-medium">{sentenceCase(role)}</span>
              <span className="block text-sm text-ink-2">{may}</span>
            </span>
          </label>
        ))}
    </fieldset>
  )
}

/** The roles that may do what this one may, in words: on a phone the columns are too narrow. */
function whoMay(least: Role): string {
  const names = roles.slice(0, roles.findIndex(({ role }) => role === least) + 1).map(({ role }) => `${role}s`)
  return names.length === roles.length ? 'Everyone' : sentenceCase(new Intl.ListFormat('en-GB').format(names))
}

/** The permissions of each role, as a table. */
export function RolesCard() {
  return (
    <Card title="What each role may do" flush className="mt-5">
      <table className="w-full border-collapse text-left">
        <thead>
          <tr className="border-b border-line text-sm text-ink-3">
            <th scope="col" className="px-4 py-2 font-medium">
              Action
            </th>
            {roles.map(({ role }) => (
              <th key={role} scope="col" className="w-20 px-1 py-2 text-center font-medium max-sm:hidden">
                {sentenceCase(role)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {acts.map(({ act, least }) => (
            <tr key={act} className="border-b border-line last:border-b-0">
              <th scope="row" className="px-4 py-2 font-normal">
                {act}
                <span className="block text-sm text-ink-3 sm:hidden">{whoMay(least)}</span>
              </th>
              {roles.map(({ role }, index) => (
                <td key={role} className="px-1 py-2 text-center max-sm:hidden">
                  {index <= roles.findIndex((one) => one.role === least) ? (
                    <Check className="mx-auto size-4 text-settled" aria-label="yes" />
                  ) : (
                    <span className="text-ink-3">
                      <span aria-hidden>–</span>
                      <span className="sr-only">no</span>
                    </span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  )
}
