import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Download, X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { chainsQuery } from '../../api/chains.ts'
import { usePurser, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ChoiceFilter } from '../../ui/choice-filter.tsx'
import { actualNetwork } from '../../ui/explorer.ts'
import { Select, SubmittedInput } from '../../ui/form.tsx'
import { networkName } from '../../ui/format.ts'
import { PhoneFilters } from '../../ui/phone-filters.tsx'
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
    <div className="mb-3 flex flex-wrap items-center gap-2 max-sm:justify-between">
      <PhoneFilters chosen={Object.keys(filters).length}>
        <Select
          aria-label="Status"
          value={search.status ?? ''}
          onChange={({ target }) => set({ status: target.value })}
        >
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
        <Select
          aria-label="Received"
          value={search.range ?? ''}
          onChange={({ target }) => set({ range: target.value })}
        >
          <option value="">Any time</option>
          {rangeNames.map((name) => (
            <option key={name} value={name}>
              {ranges[name].label}
            </option>
          ))}
        </Select>
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
        {search.batchId !== undefined && (
          <Button onClick={() => set({ batchId: undefined })} aria-label="One transaction: show all payments">
            One transaction <X aria-hidden />
          </Button>
        )}
        {isFiltered && (
          <Button tone="ghost" onClick={() => void navigate({ to: '/payments', search: {} })}>
            <X aria-hidden /> Clear
          </Button>
        )}
      </PhoneFilters>
      <span className="flex-1 max-sm:hidden" />
      <ExportButton filters={filters} />
    </div>
  )
}

interface FilterProps {
  readonly value: string | undefined
  readonly onSet: (value: string) => void
}

/** The chains that have a node here, by the names of wallets, and the chain of the URL. Two names may mean one network. */
function ChainFilter(props: FilterProps) {
  const { purser, environment } = useWorkspace()
  const { data = [] } = useQuery(chainsQuery(purser))
  const names = data.filter(({ configured }) => configured).map(({ name }): string => name)
  const all = props.value === undefined || names.includes(props.value) ? names : [...names, props.value]
  const choices = all.map((id) => {
    const network = actualNetwork(id, environment)
    return { id, name: network === id ? networkName(id) : `${networkName(network)} (${id})` }
  })
  return <ChoiceFilter label="Network" className="sm:max-w-40" any="Any network" choices={choices} {...props} />
}

function KeyFilter(props: FilterProps) {
  const { purser, environment } = useWorkspace()
  const { data = [] } = useQuery({
    queryKey: ['api-keys', 'names', environment],
    queryFn: async ({ signal }) => {
      const { items } = await purser.organisations.apiKeys.list({ limit: 100 }, { signal }).page()
      // In live the service lists the keys of both environments.
      return items.filter((key) => key.environment === environment)
    },
  })
  return <ChoiceFilter label="API key" className="sm:max-w-40" any="Any key" choices={data} {...props} />
}

function WalletFilter(props: FilterProps) {
  const purser = usePurser()
  const { data = [] } = useQuery({
    queryKey: ['wallets', 'names'],
    queryFn: async ({ signal }) => {
      const [byo, master] = await Promise.all([
        purser.wallets.byo.list({ limit: 100 }, { signal }).page(),
        purser.wallets.master.list({ limit: 100 }, { signal }).page(),
      ])
      return [...byo.items, ...master.items].map(({ id, name }) => ({ id, name }))
    },
  })
  return <ChoiceFilter label="Wallet" className="sm:max-w-40" any="Any wallet" choices={data} {...props} />
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
