import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Download, X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { chainsQuery } from '../../api/chains.ts'
import { usePurser, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { Select, SubmittedInput } from '../../ui/form.tsx'
import { middleTruncate, networkName } from '../../ui/format.ts'
import { rangeNames, ranges } from '../../ui/range.ts'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { downloadCsv, exportRowsMax } from './export-csv.ts'
import { paymentState } from './payment-state.ts'
import type { filtersOf } from './queries.ts'
import { type PaymentsSearch, paymentStatuses, readPaymentsSearch } from './search.ts'

interface FiltersProps {
  readonly search: PaymentsSearch
  readonly filters: ReturnType<typeof filtersOf>
}

/** The filters of the list of payments. The URL contains each of them, so that a view can be shared. */
export function PaymentsFilters({ search, filters }: FiltersProps) {
  const navigate = useNavigate()
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: '/payments', search: (old) => readPaymentsSearch({ ...old, ...change }), replace: true })
  const isFiltered = Object.keys(filters).length > 0
  return (
    <div className="mb-3 grid grid-cols-2 gap-2 sm:flex sm:flex-wrap sm:items-center">
      <Select aria-label="Status" value={search.status ?? ''} onChange={({ target }) => set({ status: target.value })}>
        <option value="">Any status</option>
        {paymentStatuses.map((status) => (
          <option key={status} value={status}>
            {paymentState(status).word}
          </option>
        ))}
      </Select>
      <Select
        aria-label="Protocol"
        value={search.protocol ?? ''}
        onChange={({ target }) => set({ protocol: target.value })}
      >
        <option value="">Any protocol</option>
        <option value="x402">x402</option>
        <option value="mpp">MPP</option>
      </Select>
      <ChainFilter value={search.chain} onSet={(chain) => set({ chain })} />
      <KeyFilter value={search.apiKeyId} onSet={(apiKeyId) => set({ apiKeyId })} />
      <WalletFilter value={search.walletId} onSet={(walletId) => set({ walletId })} />
      <Select aria-label="Received" value={search.range ?? ''} onChange={({ target }) => set({ range: target.value })}>
        <option value="">Any time</option>
        {rangeNames.map((name) => (
          <option key={name} value={name}>
            {ranges[name].label}
          </option>
        ))}
      </Select>
      <span className="flex-1 max-sm:hidden" />
      <ExportButton filters={filters} />
      <span className="basis-full max-sm:hidden" />
      <SubmittedInput
        key={search.route ?? ''}
        label="Route"
        placeholder="Route: https://api.example.com/…"
        value={search.route ?? ''}
        onSet={(route) => set({ route })}
      />
      <SubmittedInput
        key={`payer ${search.payer ?? ''}`}
        label="Payer"
        placeholder="Payer: 0x…"
        value={search.payer ?? ''}
        onSet={(payer) => set({ payer })}
      />
      {isFiltered && (
        <Button tone="ghost" onClick={() => void navigate({ to: '/payments', search: {} })}>
          <X aria-hidden /> Clear
        </Button>
      )}
    </div>
  )
}

interface FilterProps {
  readonly value: string | undefined
  readonly onSet: (value: string) => void
}

/** The chains that have a node here, by the names of wallets. */
function ChainFilter({ value, onSet }: FilterProps) {
  const { data = [] } = useQuery(chainsQuery(usePurser()))
  const names = data.filter(({ configured }) => configured).map(({ name }) => name as string)
  const all = value === undefined || names.includes(value) ? names : [...names, value]
  return (
    <Select aria-label="Network" value={value ?? ''} onChange={({ target }) => onSet(target.value)}>
      <option value="">Any network</option>
      {all.map((name) => (
        <option key={name} value={name}>
          {networkName(name)}
        </option>
      ))}
    </Select>
  )
}

function KeyFilter({ value, onSet }: FilterProps) {
  const { purser, environment } = useWorkspace()
  const { data = [] } = useQuery({
    queryKey: ['api-keys', 'names', environment],
    queryFn: async ({ signal }) => {
      const { items } = await purser.organisations.apiKeys.list({ limit: 100 }, { signal }).page()
      // In live the service lists the keys of both environments.
      return items.filter((key) => key.environment === environment)
    },
  })
  const all = value === undefined || data.some(({ id }) => id === value) ? data : [...data, { id: value, name: null }]
  return (
    <Select
      aria-label="API key"
      value={value ?? ''}
      onChange={({ target }) => onSet(target.value)}
      className="max-w-52"
    >
      <option value="">Any key</option>
      {all.map(({ id, name }) => (
        <option key={id} value={id}>
          {name ?? middleTruncate(id)}
        </option>
      ))}
    </Select>
  )
}

function WalletFilter({ value, onSet }: FilterProps) {
  const purser = usePurser()
  const wallets = useQuery({
    queryKey: ['wallets', 'names'],
    queryFn: async ({ signal }) => {
      const [byo, master] = await Promise.all([
        purser.wallets.byo.list({ limit: 100 }, { signal }).page(),
        purser.wallets.master.list({ limit: 100 }, { signal }).page(),
      ])
      return [...byo.items, ...master.items].map(({ id, name }) => ({ id, name }))
    },
  })
  const known = wallets.data ?? []
  const others = value !== undefined && !known.some(({ id }) => id === value) ? [{ id: value, name: null }] : []
  return (
    <Select aria-label="Wallet" value={value ?? ''} onChange={({ target }) => onSet(target.value)} className="max-w-52">
      <option value="">Any wallet</option>
      {[...known, ...others].map(({ id, name }) => (
        <option key={id} value={id}>
          {name ?? middleTruncate(id)}
        </option>
      ))}
    </Select>
  )
}

function ExportButton({ filters }: { filters: FiltersProps['filters'] }) {
  const purser = usePurser()
  const [stop, setStop] = useState<AbortController>()
  useEffect(() => () => stop?.abort(), [stop])
  const run = async () => {
    const controller = new AbortController()
    setStop(controller)
    try {
      const isWhole = await downloadCsv(purser, filters, controller.signal)
      const newest = `Only the newest ${exportRowsMax.toLocaleString('en-US')}: narrow the time for the rest.`
      toastDone('Payments saved', isWhole ? undefined : newest)
    } catch (error) {
      if (!controller.signal.aborted) toastFailed(error)
    } finally {
      setStop(undefined)
    }
  }
  return (
    <Button onClick={() => void run()} busy={stop !== undefined}>
      <Download aria-hidden /> {stop === undefined ? 'Export CSV' : 'Exporting …'}
    </Button>
  )
}
