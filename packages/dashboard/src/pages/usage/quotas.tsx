import type { Plan, Purser, Usage } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'

export const usageKey = ['usage'] as const

export function usageQuery(purser: Purser) {
  return queryOptions({ queryKey: usageKey, queryFn: ({ signal }) => purser.account.usage({ signal }) })
}

export function planQuery(purser: Purser) {
  return queryOptions({ queryKey: ['plan'], queryFn: ({ signal }) => purser.billing.plan({ signal }) })
}

/** The label of what a quota counts. */
const labels = {
  payments: 'Payments this month',
  byoWallets: 'Own wallets',
  managedWallets: 'Managed wallets',
  childAddresses: 'Child addresses',
  activeVaults: 'Active vaults',
  persistedVaults: 'Persisted vaults',
  storageBytes: 'Storage',
  webhooks: 'Webhooks',
} as const satisfies Readonly<Partial<Record<keyof Usage, string>>>

type QuotaName = keyof typeof labels

export interface Quota {
  readonly name: QuotaName
  readonly label: string
  readonly used: number
  /** -1 means unlimited. */
  readonly limit: number
}

const names = Object.keys(labels) as readonly QuotaName[]

export function quotasOf(usage: Usage | undefined): readonly Quota[] {
  if (usage === undefined) return []
  return names.map((name) => ({ name, label: labels[name], ...usage[name] }))
}

/** A quota is marked as nearly used from this share on. */
const nearlyUsedShare = 0.8

export function isNearlyUsed({ used, limit }: Quota): boolean {
  return limit > 0 && used / limit >= nearlyUsedShare
}

/** `3 of 10`, `1.2 GB of 10 GB`; without a limit what is used alone. */
export function quotaWords({ name, used, limit }: Quota): string {
  const size = name === 'storageBytes' ? planBytes : plainNumber
  return limit < 0 ? size(used) : `${size(used)} of ${size(limit)}`
}

/** The plan's allowance, as a figure or in words. */
export function limitWords(name: keyof Plan['limits'], limit: number): string {
  if (limit < 0) return 'Unlimited'
  if (/Bytes$/.test(name)) return planBytes(limit)
  if (!/Seconds/.test(name)) return plainNumber(limit)
  const hours = limit / 3_600
  return hours % 24 === 0 && hours > 24 ? `${hours / 24} days` : `${hours} hours`
}

function plainNumber(number: number): string {
  return number.toLocaleString('en-US')
}

/** Plans count 1 MB as 2^20 bytes. */
function planBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'] as const
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1_024 ** power).toLocaleString('en-US', { maximumFractionDigits: 1 })} ${units[power] ?? 'B'}`
}

/** The used part of each quota, with a bar if it has a limit. */
export function Quotas({ quotas }: { quotas: readonly Quota[] }) {
  return (
    <ul className="flex flex-col gap-3">
      {quotas.map((quota) => (
        <li key={quota.name}>
          <div className="flex justify-between gap-3">
            <span>{quota.label}</span>
            <span className="num text-ink-2">{quotaWords(quota)}</span>
          </div>
          {quota.limit > 0 && (
            <div className="mt-1 h-1.5 overflow-hidden rounded-full bg-well">
              <div
                className={isNearlyUsed(quota) ? 'h-full bg-held' : 'h-full bg-accent'}
                style={{ width: `${Math.min(100, (quota.used / quota.limit) * 100)}%` }}
              />
            </div>
          )}
        </li>
      ))}
    </ul>
  )
}
