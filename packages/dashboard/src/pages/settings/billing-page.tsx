import type { Plan } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { useMay, useWorkspace } from '../../api/context.ts'
import { BackLink } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { sentenceCase } from '../../ui/format.ts'
import { Card, Page, Skeleton } from '../../ui/page.tsx'
import { CopyButton } from '../../ui/values.tsx'
import { isNearlyUsed, limitWords, planQuery, Quotas, quotasOf, usageQuery } from '../usage/quotas.tsx'

/** The page to which every `upgradeUrl` leads: the limits of the plan, their use, and how to raise them. */
export function BillingPage() {
  const { purser, environment } = useWorkspace()
  const plan = useQuery(planQuery(purser))
  const usage = useQuery(usageQuery(purser))
  const near = quotasOf(usage.data).filter(isNearlyUsed)
  return (
    <Page
      back={<BackLink to="/settings" list="Settings" />}
      title={plan.data === undefined ? 'Plan' : `${sentenceCase(plan.data.plan)} plan`}
      state={
        near.length === 0
          ? 'The limits of your plan, and how to raise them.'
          : 'Some limits are reached or nearly reached.'
      }
    >
      <div className="grid gap-5 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-5">
          {plan.data !== undefined && <UpgradeCard plan={plan.data.plan} />}
          <Card title={`Usage in ${environment}`}>
            {usage.error !== null ? (
              <ErrorBlock error={usage.error} onRetry={() => usage.refetch()} />
            ) : usage.data === undefined ? (
              <Skeleton lines={7} />
            ) : (
              <Quotas quotas={quotasOf(usage.data)} />
            )}
          </Card>
        </div>
        {plan.error === null ? (
          <Card title="Limits of the plan" flush>
            {plan.data === undefined ? <Skeleton lines={10} className="p-4" /> : <LimitsTable plan={plan.data} />}
          </Card>
        ) : (
          <Card title="Limits of the plan">
            <ErrorBlock error={plan.error} onRetry={() => plan.refetch()} />
          </Card>
        )}
      </div>
    </Page>
  )
}

const limitLabels: Readonly<Record<keyof Plan['limits'], string>> = {
  paymentsPerMonth: 'Verified payments a month',
  byoWallets: 'Own wallets',
  managedWallets: 'Managed wallets',
  childAddresses: 'Child addresses',
  registryRoutes: 'Routes in the registry',
  webhooks: 'Webhook endpoints',
  activeVaults: 'Active vaults',
  persistedVaults: 'Persisted vaults',
  storageBytes: 'Storage of all vaults',
  documentsPerVault: 'Documents in a vault',
  filesPerVault: 'Files in a vault',
  fileBytes: 'Size of a file',
  vaultTtlSecondsDefault: 'Default lifetime of a vault',
  vaultTtlSecondsMax: 'Maximum lifetime of a vault',
}

function LimitsTable({ plan: { limits } }: { plan: Plan }) {
  const names = Object.keys(limitLabels) as readonly (keyof Plan['limits'])[]
  return (
    <table className="w-full border-collapse text-left">
      <caption className="sr-only">Limits of the plan, for each environment</caption>
      <tbody>
        {names.map((name) => (
          <tr key={name} className="border-b border-line last:border-b-0">
            <th scope="row" className="px-4 py-2 font-normal">
              {limitLabels[name]}
            </th>
            <td className="num px-4 py-2 text-right font-medium whitespace-nowrap">{limitWords(name, limits[name])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const nextPlans: Readonly<Partial<Record<Plan['plan'], Plan['plan']>>> = { hobby: 'pro', pro: 'enterprise' }

/** Shows the command with which the operator of the service changes the plan. */
function UpgradeCard({ plan }: { plan: Plan['plan'] }) {
  const { organisation } = useWorkspace()
  const isOwner = useMay('owner')
  const next = nextPlans[plan]
  if (next === undefined)
    return (
      <Card title="Upgrade">
        <p className="text-ink-2">This is the largest plan. Its counts have no limits.</p>
      </Card>
    )
  const command = `npx purser admin set-plan --organisation ${organisation.id} --plan ${next}`
  return (
    <Card title={`Upgrade to ${next}`}>
      <p>
        {isOwner
          ? 'The operator of this service changes the plan. Send them this command:'
          : 'The operator of this service changes the plan when an owner requests it. The command is:'}
      </p>
      <p className="mt-3 flex items-start gap-2 rounded-control bg-well px-3 py-2">
        <code className="min-w-0 flex-1 font-mono text-sm break-all">{command}</code>
        <CopyButton value={command} />
      </p>
      <p className="mt-3 text-ink-2">The new limits apply from the next request. No restart is needed.</p>
    </Card>
  )
}
