import type { Address } from '@purser/protocol'
import type { Chains } from '../../chain/port.ts'
import type { Deps, Environment } from '../../platform/ctx.ts'
import type { Outbound } from '../../platform/outbound.ts'
import { pause } from '../../platform/work/loop.ts'
import { isStale } from './dating.ts'
import { findCurrentList, type ListRow } from './list-store.ts'
import { createListReader, ensureBundledList, type LoadedList, readAddresses } from './lists.ts'
import { addressesPerRequest, createOracle, hasOracle, type Oracle, type OracleRound } from './oracle.ts'
import type { ListState, OracleAnswer, Screened, Screening, ScreeningRound } from './port.ts'
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
  const oracle = createOracleMemory(
    createOracle({ ...deps, chains: options.chains }),
    () => deps.clock.now(),
    addressesPerRequest,
  )
  const list = async (): Promise<ListState> => shown((await lists.read()).row, deps.clock.now())
  const judge = judgeFor(deps, options)
  const isOracleConfigured = hasOracle(options.chains)
  const following = startFollowing(deps, async () => {
    await lists.read()
    await oracle.refresh()
  })
  return {
    addressesMax: addressesPerRequest,
    list,
    stop: following.stop,
    screenNow(address, environment) {
      const verdict = isOracleConfigured ? oracle.of(address) : 'none'
      return judge({ list: lists.last(), address, oracle: verdict }, environment)
    },
    async screen(addresses) {
      const current = await lists.read()
      return roundOf({ list: current, oracleRound: await oracle.query(addresses), judge }, addresses)
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
      const isUsed = options.isSandbox !== true || isOracleConfigured
      reportListAge(deps, await list(), { hasUrl: options.listUrl !== undefined, isUsed })
    },
  }
}

/** Keeps the list and the oracle's answers in memory up to date until stopped. Logs failures and retries. */
function startFollowing({ log }: ScreeningDeps, follow: () => Promise<void>): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const loop = async (): Promise<void> => {
    for (;;) {
      await pause(followMs, stopping.signal)
      if (stopping.signal.aborted) return
      await follow().catch((error: unknown) => log.warn({ err: error }, 'the sanctions list could not be read'))
    }
  }
  const ended = loop()
  return {
    stop() {
      stopping.abort()
      return ended
    },
  }
}

interface Evidence {
  readonly list: LoadedList
  readonly address: string
  readonly oracle: OracleAnswer
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
  readonly oracleRound: OracleRound
  readonly judge: Judge
}

function roundOf({ list, oracleRound, judge }: Findings, addresses: readonly Address[]): ScreeningRound {
  const positions = new Map(addresses.map((address, index) => [address.toLowerCase(), index]))
  return {
    listVersion: list.row.version,
    listAsOf: list.row.asOf,
    oracleNetworks: oracleRound.networks,
    of(address, environment) {
      const position = positions.get(address.toLowerCase())
      if (position === undefined) throw new Error('the address was not screened')
      return judge({ list, address, oracle: oracleRound.of(position) }, environment)
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
const answersMax = 50_000
const wantedMax = 5_000
const freshMs = 86_400_000

interface OracleMemory {
  /** The cached answer; `unknown` for an address without an answer of the last day, which `refresh` then looks up. */
  of(address: string): OracleAnswer
  /** Queries the oracle about these addresses and caches the answers. */
  query: Oracle
  /** Looks up waiting addresses, as many as fit into one request. */
  refresh(): Promise<void>
}

/** Caches the oracle's answers for callers that must not wait for a node. */
function createOracleMemory(oracle: Oracle, now: () => Date, requestMax: number): OracleMemory {
  const answers = new Map<string, { readonly answer: OracleAnswer; readonly atMs: number }>()
  const wanted = new Set<string>()
  const keep = (address: string, answer: OracleAnswer): void => {
    if (answer === 'failed') return
    answers.delete(address)
    answers.set(address, { answer, atMs: now().getTime() })
    forgetOldest(answers, answersMax)
  }
  const query: Oracle = async (addresses) => {
    const round = await oracle(addresses)
    for (const [index, address] of addresses.entries()) keep(address.toLowerCase(), round.of(index))
    return round
  }
  return {
    query,
    of(address) {
      const plain = address.toLowerCase()
      const known = answers.get(plain)
      const isFresh = known !== undefined && now().getTime() - known.atMs < freshMs
      if (!isFresh && wanted.size < wantedMax) wanted.add(plain)
      // An old `sanctioned` answer still counts.
      return isFresh || known?.answer === 'sanctioned' ? known.answer : 'unknown'
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
  readonly oracle: OracleAnswer
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
