import type { Address } from '@purser/protocol'
import type { Chains } from '../../chain/port.ts'
import type { Deps } from '../../platform/ctx.ts'
import type { Outbound } from '../../platform/outbound.ts'
import { isStale } from './dating.ts'
import { findCurrentList, type ListRow } from './list-store.ts'
import { createListReader, ensureBundledList, readAddresses } from './lists.ts'
import { addressesPerRequest, createOracle, type OracleRound } from './oracle.ts'
import type { ListState, Screening, ScreeningRound } from './port.ts'
import { refreshWhenDue } from './refresh.ts'
import { verdictOf } from './verdict.ts'

export interface ScreeningOptions {
  readonly chains: Chains
  readonly outbound: Outbound
  /** Where the list is refreshed from; undefined where an operator brings it by hand. */
  readonly listUrl: string | undefined
}

type ScreeningDeps = Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>

/** The screening of a deployment: its list, in the database, and the oracle through its nodes. */
export async function openScreening(deps: ScreeningDeps, options: ScreeningOptions): Promise<Screening> {
  await ensureBundledList(deps)
  const heldList = createListReader(deps.db)
  const oracle = createOracle({ ...deps, chains: options.chains })
  const list = async (): Promise<ListState> => shown((await heldList()).row, deps.clock.now())
  return {
    addressesMax: addressesPerRequest,
    list,
    async screen(addresses) {
      const { row, addresses: listed } = await heldList()
      const said = await oracle(addresses)
      return roundOf({ row, listed, isListStale: isStale(row.asOf, deps.clock.now()), said }, addresses)
    },
    async isCurrentList(tx, version) {
      return (await findCurrentList(tx))?.version === version
    },
    async difference(from, to) {
      const [before, after] = await Promise.all([readAddresses(deps.db, from), readAddresses(deps.db, to)])
      return [...[...before].filter((one) => !after.has(one)), ...[...after].filter((one) => !before.has(one))]
    },
    async refreshIfDue() {
      if (options.listUrl !== undefined) await refreshWhenDue({ ...deps, ...options }, options.listUrl)
      tellOperator(deps, await list(), options.listUrl !== undefined)
    },
  }
}

interface Findings {
  readonly row: ListRow
  readonly listed: ReadonlySet<string>
  readonly isListStale: boolean
  readonly said: OracleRound
}

function roundOf({ row, listed, isListStale, said }: Findings, addresses: readonly Address[]): ScreeningRound {
  const positions = new Map(addresses.map((address, index) => [address.toLowerCase(), index]))
  return {
    listVersion: row.version,
    listAsOf: row.asOf,
    oracleNetworks: said.networks,
    of(address, environment) {
      const plain = address.toLowerCase()
      const position = positions.get(plain)
      if (position === undefined) throw new Error('that address was not asked about')
      return verdictOf({ isListed: listed.has(plain), isListStale, oracle: said.of(position) }, environment)
    },
  }
}

function shown({ version, source, listDate, asOf, addressCount }: ListRow, now: Date): ListState {
  return { version, source, listDate, asOf, addressCount, isStale: isStale(asOf, now) }
}

function tellOperator({ metrics, log, clock }: ScreeningDeps, list: ListState, hasUrl: boolean): void {
  const ageSeconds = Math.max(0, (clock.now().getTime() - list.asOf.getTime()) / 1_000)
  metrics.gauge('purser_sanctions_list_age_seconds', 'Since the sanctions list was last known to hold.').set(ageSeconds)
  metrics.gauge('purser_sanctions_list_addresses', 'Addresses on the sanctions list.').set(list.addressCount)
  metrics.gauge('purser_sanctions_list_stale', '1 while no screening can clear anybody.').set(list.isStale ? 1 : 0)
  if (!list.isStale) return
  const how = hasUrl ? 'see why the refresh fails' : 'set SANCTIONS_LIST_URL, or run purser admin refresh-sanctions'
  log.warn(
    { listDate: list.listDate, asOf: list.asOf, how },
    'the sanctions list is stale: every screening stays pending until it is refreshed',
  )
}
