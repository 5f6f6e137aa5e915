import { isHex, type Network, networks } from '@purser/protocol'
import { createChains, createLanes, createSignatures, createTempoTransactions } from './chain/index.ts'
import type { ChainHealth, Chains } from './chain/port.ts'
import { type Config, longWaits } from './config.ts'
import { createFaucetSigner, openCustody } from './custody/index.ts'
import { challengeSeconds } from './features/payments/index.ts'
import { areStale, createGasPrices, type GasPrices, shippedCoinPrices } from './features/plans/index.ts'
import { sellerLimits } from './features/transfers/index.ts'
import { createAccountSigners } from './features/wallets/index.ts'
import { openFiles, openMarks } from './files/index.ts'
import { ownHosts } from './own-hosts.ts'
import { openPartners } from './partners/index.ts'
import type { RoutingPartners } from './partners/routing/port.ts'
import { openScreening } from './partners/screening/index.ts'
import type { ListState, Screening } from './partners/screening/port.ts'
import { type Clock, systemClock } from './platform/clock.ts'
import type { Deps } from './platform/ctx.ts'
import type { CustomerUrls } from './platform/customer-url.ts'
import { openDb, openPool } from './platform/db/db.ts'
import { watchDurability } from './platform/db/durability.ts'
import { createFairDb } from './platform/db/fair-db.ts'
import { requireMigrated } from './platform/db/migrate.ts'
import { createGuardedFetch } from './platform/guarded-fetch.ts'
import { limitsDefault } from './platform/http/http-options.ts'
import { createKeptBytes } from './platform/http/kept-bytes.ts'
import { createLog, type Log } from './platform/log.ts'
import { createMetrics, type Metrics } from './platform/metrics.ts'
import { createOutbound } from './platform/outbound.ts'
import { type Random, systemRandom } from './platform/random.ts'
import { createSemaphores } from './platform/semaphores.ts'
import { createMemoryBudget } from './platform/share.ts'
import { createWitness, nameDeployment } from './platform/witness/witness.ts'
import { createProbe, type ProbeIntervals } from './platform/work/due-work.ts'

export interface Overrides {
  readonly clock?: Clock
  readonly random?: Random
  readonly log?: Log
  readonly screening?: Screening
  readonly gasPrices?: GasPrices
  /** Least payments of an owner that may be released a day; tests make it small. */
  readonly releasedPerDayMin?: number
  /** Intervals at which the database is read for work that is due; tests make them longer. */
  readonly probe?: ProbeIntervals | undefined
  /** Replaces the partners that the configuration opened. */
  readonly routing?: (opened: RoutingPartners) => RoutingPartners
}

/** Connections for sign-ins, which are rare. Sessions of requests are looked up through the service's own pool. */
const signInConnectionsMax = 2

/** Opens the external systems: database, chains, keys, files, partners. If one fails to open, the others are closed. `modules.ts` builds the features on them. */
export async function openPorts(config: Config, overrides: Overrides = {}) {
  const closing = new AsyncDisposableStack()
  try {
    return await openEach(config, overrides, closing)
  } catch (error) {
    // The error that began this is thrown.
    await closing.disposeAsync().catch(() => undefined)
    throw error
  }
}

/** Opens the database, which a witness outside it compares with what was done before. */
async function openDatabase(
  config: Config,
  { clock, random, log }: Pick<Deps, 'clock' | 'log' | 'random'>,
  closing: AsyncDisposableStack,
) {
  const marks = await openMarks(config.witness ?? config.files, { random })
  closing.defer(() => marks.close())
  const witness = createWitness({ marks, clock, log })
  const pooler = config.databasePooler ?? 'none'
  const database = { url: config.databaseUrl, log, pooler, onConnect: witness.compare }
  const db = openDb({ ...database, connectionsMax: config.databaseConnectionsMax })
  closing.defer(() => db.close())
  witness.open(db)
  await requireMigrated(db)
  await nameDeployment(db, random)
  /** Connections for better-auth, which writes its own statements. */
  const openSignInPool = () => openPool({ ...database, connectionsMax: signInConnectionsMax })
  return { db, witness, openSignInPool }
}

/** Opens the systems one after the other. `closing` gets what closes each, in reverse order. */
async function openEach(config: Config, overrides: Overrides, closing: AsyncDisposableStack) {
  const clock = overrides.clock ?? systemClock
  const random = overrides.random ?? systemRandom
  const log = overrides.log ?? createLog({ level: config.logLevel })
  const metrics = createMetrics()
  const { db, witness, openSignInPool } = await openDatabase(config, { clock, random, log }, closing)
  const outbound = createOutbound()
  closing.defer(() => outbound.close())
  const signatures = await createSignatures()
  if (signatures.engine !== 'native')
    log.warn('the native curve library is missing; signatures are recovered in WebAssembly, four times slower')
  const custody = await openCustody({
    db,
    clock,
    random,
    log,
    signatures,
    outbound,
    witness,
    keys: { first: config.keyEncryption, also: config.keyEncryptionAlso ?? [] },
    createIfMissing: config.createKeyEncryptionKey,
    mppChallengeSeconds: challengeSeconds,
  })
  // After the checks of the database and the key: it may create the directory, and says so once.
  const files = await openFiles(config.files, { clock, random, log })
  closing.defer(() => files.close())
  const chains = createChains({
    outbound,
    clock,
    networks,
    rpcUrls: config.rpcUrls,
    rpcTimeoutMs: config.rpcTimeoutMs,
    explorerUrls: config.explorerUrls,
    log,
    onNode: (network, node) => showNode(metrics, network, node),
  })
  const partners = openPartners({ outbound, log, clock, chains, random }, config.partners ?? {})
  const screening =
    overrides.screening ??
    (await openScreening(
      { db, clock, log, metrics },
      { chains, outbound, listUrl: config.sanctionsListUrl, isSandbox: config.sandboxScreening },
    ))
  closing.defer(() => screening.stop())
  const coinPrices = config.coinPrices ?? shippedCoinPrices
  if (areStale(coinPrices, clock.now()))
    log.warn({ date: coinPrices.date }, 'the prices of coins are more than 30 days old; set COIN_PRICES')
  for (const wait of longWaits(config))
    log.warn(
      wait,
      'the service may respond after clients have given up, which is after 30 s by default: a buyer may be charged and not served',
    )
  const accountSigners = createAccountSigners({ db, walletKeys: custody.walletKeys })
  const customerUrls: CustomerUrls = {
    reach: config.webhooksAllowPrivate ? 'public-and-private' : 'public',
    ownHosts: ownHosts(config),
  }
  const guardedFetch = createGuardedFetch(customerUrls)
  const sellerFetch = createGuardedFetch({ ...customerUrls, limits: sellerLimits })
  closing.defer(() => guardedFetch.close())
  closing.defer(() => sellerFetch.close())
  const floor = {
    db,
    fairDb: createFairDb(config.databaseConnectionsMax),
    withSemaphores: createSemaphores(config.databaseConnectionsMax),
    keptBytes: createKeptBytes({ db, clock, log, metrics }, config.idempotencyBytesMax ?? 34_359_738_368),
    probe: createProbe({ db, log }, overrides.probe),
    isSignUpOpen: config.signIn?.isSignUpOpen ?? false,
    clock,
    random,
    log,
    metrics,
    witness,
    sealer: custody.sealer,
    baseUrl: config.baseUrl,
    upgradeUrl: `${config.dashboardUrl}/settings/billing`,
    environments: config.environments,
    chains,
    screening,
    tempoTransactions: createTempoTransactions(signatures),
  }
  const { testFaucetKey = '' } = config
  const faucet = isHex(testFaucetKey) ? createFaucetSigner(testFaucetKey, signatures) : undefined
  const durability = watchDurability({ db, clock, log }, config.databaseDurability)
  await durability()
  const ports = {
    ...floor,
    ...partners,
    routingPartners: overrides.routing?.(partners.routingPartners) ?? partners.routingPartners,
    gasPrices: overrides.gasPrices ?? createGasPrices({ chains, clock, log }, coinPrices),
    settlementTokens: custody.settlementTokens,
    customerUrls,
    guardedFetch,
    sellerFetch,
    reserveResponse: createMemoryBudget(config.bodiesBytesMax ?? limitsDefault.bodiesBytesMax),
    blobs: files.blobs,
    fileLinks: custody.fileLinks,
    mppSecrets: custody.mppSecrets,
    serviceSeal: custody.seal,
    walletKeys: custody.walletKeys,
    lanes: createLanes({
      deps: floor,
      chains,
      sponsor: custody.settler,
      signerOf: async (account) => {
        if (account === custody.settler.address) return custody.settler
        return account === faucet?.address ? faucet : accountSigners(account)
      },
      leaseMs: config.leaseMs,
    }),
    faucet,
    signatures,
    feeSponsor: config.sponsorTempoFees ? { signer: custody.settler } : undefined,
    settlerAddress: custody.settler.address,
  }
  return {
    ports,
    signInSecret: custody.signInSecret,
    openSignInPool,
    readinessDetails: async () => ({
      durability: await durability(),
      screening: shownList(await screening.list()),
      networks: reachOf(chains),
      chains: shownChains(chains),
      coinPrices: { date: coinPrices.date, state: areStale(coinPrices, clock.now()) ? 'stale' : 'fresh' },
    }),
    /** Stops requests to nodes; `close` releases the rest. */
    stopChains: () => chains.stop(),
    close: () => closing.disposeAsync(),
  }
}

/** Sets the gauge of a node to 1 if the node is used, 0 if it is behind, suspended or refused; nothing until its chain is known. */
function showNode(metrics: Metrics, network: Network, { index, state }: { index: number; state: string }): void {
  if (state === 'unchecked') return
  metrics
    .gauge('purser_rpc_node_up', 'Whether a node, by its index in the configuration, is used.', ['network', 'node'])
    .set({ network: network.name, node: String(index) }, state === 'up' ? 1 : 0)
}

/** `none`: no network is configured, so no payment is possible. `unreachable`: no node of any network responds. */
function reachOf(chains: Chains): 'none' | 'unreachable' | 'reachable' {
  if (chains.configured.length === 0) return 'none'
  return chains.configured.every((network) => chains.health(network)?.status === 'down') ? 'unreachable' : 'reachable'
}

function shownChains(chains: Chains): Readonly<Record<string, ChainHealth | undefined>> {
  return Object.fromEntries(chains.configured.map((network) => [network.name, chains.health(network)]))
}

function shownList({ isStale, listDate, asOf, version }: ListState) {
  return { list: isStale ? 'stale' : 'fresh', listDate, asOf: asOf.toISOString(), listVersion: Number(version) }
}
