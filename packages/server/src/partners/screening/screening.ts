import type { Address, Network } from '@purser/protocol'
import type { Chains } from '../../chain/port.ts'
import type { Deps, Environment } from '../../platform/ctx.ts'
import type { Outbound } from '../../platform/outbound.ts'
import { type RunningLoop, startLoop } from '../../platform/work/loop.ts'
import { isStale } from './dating.ts'
import { findCurrentList, type ListRow } from './list-store.ts'
import { createListReader, ensureBundledList, type LoadedList, readAddresses } from './lists.ts'
import type { ListState, OracleResult, Screened, Screening, ScreeningBatch } from './port.ts'
import { refreshWhenDue } from './refresh.ts'
import { sandboxVerdict } from './sandbox.ts'

export interface ScreeningOptions {
  readonly chains: Chains
  readonly outbound: Outbound
  /** Source of the list; undefined when an operator updates it manually. */
  readonly listUrl: string | undefined
  /** Whether test keys get the sandbox's answers. */
  readonly isSandbox?: boolean
}

type ScreeningDeps = Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>

/** Longest age of the list in memory: a list stored by another process takes effect here within this time. */
const followMs = 2_000

/** The deployment's screening: the list in the database and the oracle through its nodes. */
export async function openScreening(deps: ScreeningDeps, options: ScreeningOptions): Promise<Screening> {
  await ensureBundledList(deps)
  const lists = createListReader(deps.db)
  await lists.read()
  const query = createOracle({ ...deps, chains: options.chains })
  const oracle = createOracleMemory(query, () => deps.clock.now(), addressesPerRequest)
  const list = async (): Promise<ListState> => shown((await lists.read()).row, deps.clock.now())
  const judge = judgeFor(deps, options)
  const isOracleConfigured = oraclesOf(options.chains).length > 0
  const following = startFollowing(deps.log, async () => {
    await lists.read()
    await oracle.refresh()
  })
  return {
    addressesMax: addressesPerRequest,
    list,
    stop: () => following.stop(),
    screenNow(address, environment) {
      const verdict = isOracleConfigured ? oracle.of(address) : 'none'
      return judge({ list: lists.last(), address, oracle: verdict }, environment)
    },
    async screen(addresses) {
      const current = await lists.read()
      return batchOf({ list: current, oracleBatch: await oracle.query(addresses), judge }, addresses)
    },
    isCurrentList: async (tx, version) => (await findCurrentList(tx))?.version === version,
    difference: differenceIn(deps.db),
    async refreshIfDue() {
      if (options.listUrl !== undefined) await refreshWhenDue({ ...deps, ...options }, options.listUrl)
      const isUsed = options.isSandbox !== true || isOracleConfigured
      reportListAge(deps, await list(), { hasUrl: options.listUrl !== undefined, isUsed })
    },
  }
}

/** Creates the function that returns the addresses which only one of two versions of the list has. */
function differenceIn(db: ScreeningDeps['db']): Screening['difference'] {
  return async (from, to) => {
    const [before, after] = await Promise.all([readAddresses(db, from), readAddresses(db, to)])
    return [...[...before].filter((one) => !after.has(one)), ...[...after].filter((one) => !before.has(one))]
  }
}

function startFollowing(log: ScreeningDeps['log'], read: () => Promise<void>): RunningLoop {
  return startLoop({
    name: 'screening.follow-list',
    everyMs: followMs,
    log,
    isTraced: false,
    async run() {
      await read()
      return undefined
    },
  })
}

interface Evidence {
  readonly list: LoadedList
  readonly address: string
  readonly oracle: OracleResult
}

type Judge = (evidence: Evidence, environment: Environment) => Screened

function judgeFor({ clock }: ScreeningDeps, { isSandbox }: ScreeningOptions): Judge {
  return ({ list, address, oracle }, environment) => {
    const plain = address.toLowerCase()
    const isListStale = isStale(list.row.asOf, clock.now())
    const verdict = verdictOf({ isListed: list.addresses.has(plain), isListStale, oracle }, environment)
    return isSandbox === true && environment === 'test' ? sandboxVerdict(plain, verdict) : verdict
  }
}

interface Findings {
  readonly list: LoadedList
  readonly oracleBatch: OracleBatch
  readonly judge: Judge
}

function batchOf({ list, oracleBatch, judge }: Findings, addresses: readonly Address[]): ScreeningBatch {
  const positions = new Map(addresses.map((address, index) => [address.toLowerCase(), index]))
  return {
    listVersion: list.row.version,
    listAsOf: list.row.asOf,
    oracleNetworks: oracleBatch.networks,
    of(address, environment) {
      const position = positions.get(address.toLowerCase())
      if (position === undefined) throw new Error('the address was not screened')
      return judge({ list, address, oracle: oracleBatch.of(position) }, environment)
    },
  }
}

function shown({ version, source, listDate, asOf, addressCount }: ListRow, now: Date): ListState {
  return { version, source, listDate, asOf, addressCount, isStale: isStale(asOf, now) }
}

/** `isUsed`: whether a screening can wait for the list. With the sandbox, those of live keys alone can. */
function reportListAge(
  { metrics, log, clock }: ScreeningDeps,
  list: ListState,
  { hasUrl, isUsed }: { readonly hasUrl: boolean; readonly isUsed: boolean },
): void {
  const ageSeconds = Math.max(0, (clock.now().getTime() - list.asOf.getTime()) / 1_000)
  metrics
    .gauge('purser_sanctions_list_age_seconds', 'Time since the sanctions list was last known to be current.')
    .set(ageSeconds)
  metrics.gauge('purser_sanctions_list_addresses', 'Addresses on the sanctions list.').set(list.addressCount)
  metrics.gauge('purser_sanctions_list_stale', '1 while no screening can clear an address.').set(list.isStale ? 1 : 0)
  if (!list.isStale || !isUsed) return
  const how = hasUrl ? 'see why the refresh fails' : 'set SANCTIONS_LIST_URL, or run purser admin refresh-sanctions'
  log.warn(
    { listDate: list.listDate, asOf: list.asOf, how },
    'the sanctions list is stale: a screening that needs it stays pending until it is refreshed',
  )
}

/** Most cached answers, and most addresses waiting for one. The oldest answers are dropped first. */
const responsesMax = 50_000
const wantedMax = 5_000
const freshMs = 86_400_000

interface OracleMemory {
  /** The cached answer; `unknown` for an address without an answer of the last day, which `refresh` then looks up. */
  of(address: string): OracleResult
  /** Queries the oracle about these addresses and caches the answers. */
  query: Oracle
  /** Looks up waiting addresses, as many as fit into one request. */
  refresh(): Promise<void>
}

/** Caches the oracle's answers for callers that must not wait for a node. */
function createOracleMemory(oracle: Oracle, now: () => Date, requestMax: number): OracleMemory {
  const results = new Map<string, { readonly result: OracleResult; readonly atMs: number }>()
  const wanted = new Set<string>()
  const keep = (address: string, result: OracleResult): void => {
    if (result === 'failed') return
    results.delete(address)
    results.set(address, { result, atMs: now().getTime() })
    forgetOldest(results, responsesMax)
  }
  const query: Oracle = async (addresses) => {
    const batch = await oracle(addresses)
    for (const [index, address] of addresses.entries()) keep(address.toLowerCase(), batch.of(index))
    return batch
  }
  return {
    query,
    of(address) {
      const plain = address.toLowerCase()
      const known = results.get(plain)
      const isFresh = known !== undefined && now().getTime() - known.atMs < freshMs
      if (!isFresh && wanted.size < wantedMax) wanted.add(plain)
      // An old `sanctioned` answer still counts.
      return isFresh || known?.result === 'sanctioned' ? known.result : 'unknown'
    },
    async refresh() {
      const next = [...wanted].slice(0, requestMax)
      if (next.length === 0) return
      for (const address of next) wanted.delete(address)
      await query(next.map((address): Address => `0x${address.slice(2)}`))
    },
  }
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
  for (const key of map.keys()) {
    if (map.size <= max) return
    map.delete(key)
  }
}

export interface AddressFacts {
  readonly isListed: boolean
  readonly isListStale: boolean
  readonly oracle: OracleResult
}

/**
 * Decides the result. Evidence against an address always counts, also from a stale list. Clearing an address needs a fresh list and an oracle's
 * answer. In the test environment, a deployment without a mainnet node needs only the list.
 */
export function verdictOf({ isListed, isListStale, oracle }: AddressFacts, environment: Environment): Screened {
  if (isListed) return { result: 'flagged', reason: 'listed', oracle }
  if (oracle === 'sanctioned') return { result: 'flagged', reason: 'oracle-sanctioned', oracle }
  if (isListStale) return { result: 'pending', reason: 'list-stale', oracle }
  if (oracle === 'failed') return { result: 'pending', reason: 'oracle-failed', oracle }
  if (oracle === 'unknown') return { result: 'pending', reason: 'oracle-unknown', oracle }
  if (oracle === 'none' && environment === 'live') return { result: 'pending', reason: 'oracle-not-configured', oracle }
  return { result: 'clear', reason: 'clean', oracle }
}

const networksMax = 2

/**
 * Addresses that OFAC listed in 2022, queried with each request: a contract that lists none of them is not the oracle. `cleanProbe` is an unused
 * address that detects a contract that reports every address as sanctioned.
 */
const listedProbes: readonly Address[] = [
  '0x098B716B8Aaf21512996dC57EB0615e2383E2f96',
  '0x7F367cC41522cE07553e823bf3be79A889DEbe1B',
  '0xd882cFc20F52f2599D84b8e8D58C7FB62cfE344b',
]
const cleanProbe: Address = '0x00000000000000000000000000000000005A11C0'
/** A node whose head is older than this is behind. */
const headAgeSecondsMax = 3_600

/** Most addresses in one request, not counting the probes. */
const addressesPerRequest = 100

interface OracleBatch {
  readonly networks: readonly string[]
  of(index: number): OracleResult
}

export type Oracle = (addresses: readonly Address[]) => Promise<OracleBatch>

/** The sanctions oracles that the nodes of this deployment can reach. */
function oraclesOf({ configured }: Chains): readonly (readonly [Network, Address])[] {
  return configured.flatMap((network) =>
    network.sanctionsOracle === null ? [] : [[network, network.sanctionsOracle] as const],
  )
}

/**
 * Queries the oracle on the first two configured networks that have it, at a majority of the nodes of each. `sanctioned` on one network is enough;
 * `clean` needs all of them, so that a single failing or wrong node cannot clear an address.
 */
export function createOracle({
  chains,
  clock,
  log,
}: Pick<Deps, 'clock' | 'log'> & { readonly chains: Chains }): Oracle {
  const selected = oraclesOf(chains).slice(0, networksMax)
  const queryOne = async ([network, contract]: (typeof selected)[number], addresses: readonly Address[]) => {
    const { timestampSeconds, sanctioned } = await chains
      .on(network)
      .sanctions(contract, [...listedProbes, cleanProbe, ...addresses])
    if (clock.now().getTime() / 1_000 - Number(timestampSeconds) > headAgeSecondsMax)
      throw new Error('the node is far behind')
    const probes = sanctioned.slice(0, listedProbes.length + 1)
    if (!probes.slice(0, -1).includes(true) || probes.at(-1) !== false)
      throw new Error('the contract is not the sanctions oracle')
    return sanctioned.slice(probes.length)
  }
  return async (addresses) => {
    const results = await Promise.all(
      selected.map((oracle) =>
        queryOne(oracle, addresses).catch((error: unknown) => {
          log.warn({ err: error, network: oracle[0].name }, 'the sanctions oracle could not be queried')
          return undefined
        }),
      ),
    )
    return {
      networks: selected.map(([{ name }]) => name),
      of: (index) => oracleResult(results.map((result) => result?.[index])),
    }
  }
}

/** Combines the responses of several oracles; undefined is a failed one. */
export function oracleResult(results: readonly (boolean | undefined)[]): OracleResult {
  if (results.length === 0) return 'none'
  if (results.includes(true)) return 'sanctioned'
  return results.includes(undefined) ? 'failed' : 'clean'
}
