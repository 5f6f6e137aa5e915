import path from 'node:path'
import { parseDuration } from '@purser/protocol'
import type { KeySource } from './custody/index.ts'
import { type CoinPrices, type PlanName, parseCoinPrices, planNames } from './features/plans/index.ts'
import type { S3Settings } from './files/index.ts'
import { readKeySettings } from './key-settings.ts'
import { type PartnerAccounts, readPartners } from './partners/index.ts'
import type { ConfigFault } from './platform/config-fault.ts'
import type { Environment } from './platform/ctx.ts'
import type { Pooler } from './platform/db/db.ts'
import { type Durability, durabilities } from './platform/db/durability.ts'
import { parseAddress } from './platform/db/hosts.ts'
import { parseProxies } from './proxies.ts'
import { createReader, misspelledSettings, type Reader, readKeptDays, watchReads } from './settings.ts'
import { readSignIn, type SignInSettings } from './sign-in-config.ts'

type Role = 'all' | 'api' | 'work'

/** The whole environment configuration, validated. No other code reads `process.env`. */
export interface Config {
  readonly role: Role
  readonly databaseUrl: string
  /** The way in which commits survive the loss of the database's server; must be stated where `live` is served. */
  readonly databaseDurability?: Durability | undefined
  readonly databaseConnectionsMax: number
  /** The pooler between the service and PostgreSQL. Default: `none`. */
  readonly databasePooler?: Pooler
  /** PostgreSQL without the pooler, for `purser-admin`. */
  readonly databaseDirectUrl?: string | undefined
  readonly host: string
  readonly port: number
  readonly metricsPort: number | undefined
  readonly baseUrl: string
  readonly dashboardUrl: string
  /** The ways in which people sign in; left out: with one-time links, passkeys and passwords, for accounts that exist. */
  readonly signIn?: SignInSettings
  readonly environments: readonly Environment[]
  /** The key-encryption key. In a database without sealed data it becomes the key that seals. */
  readonly keyEncryption: KeySource
  /** Keys that open data sealed earlier, while a rotation is in progress. */
  readonly keyEncryptionAlso?: readonly KeySource[]
  /** Whether a missing key-encryption key may be created: only under `npm start`. */
  readonly createKeyEncryptionKey: boolean
  /** JSON-RPC addresses per network name, tried in order. */
  readonly rpcUrls: Readonly<Record<string, readonly string[]>>
  readonly rpcTimeoutMs: number
  /** Block explorers that override a network's default, by network name; null if no explorer has the chain. */
  readonly explorerUrls?: Readonly<Record<string, string | null>>
  readonly eip6492Factories: readonly string[]
  readonly logLevel: string
  readonly keyLimit: { readonly perSecond: number; readonly burst: number }
  readonly addressLimit: { readonly perSecond: number; readonly burst: number }
  readonly organisationLimit?: { readonly perSecond: number; readonly burst: number }
  /** The number of proxies before the service, or their networks; false if callers connect directly. */
  readonly trustProxy: false | number | readonly string[]
  readonly connectionsMax?: number
  readonly connectionsPerAddressMax?: number
  readonly bodiesBytesMax?: number
  readonly idempotencyBytesMax?: number
  /** Longest that a settle call waits for the outcome before it responds 202. */
  readonly settleWaitMs: number
  /** Milliseconds for which a transfer waits for its block before the response is `pending`. */
  readonly transferWaitMs: number
  // The official clients in Python and Go time out after 30 s.
  /** Longest that the facilitator's settle waits before it responds `settlement_pending`, or cancels a payment that was never sent. */
  readonly facilitatorWaitMs: number
  /** Milliseconds that another process waits before it takes over the work of a process that stopped. */
  readonly leaseMs?: number
  /** Whether a line is logged for each response. */
  readonly accessLog?: boolean
  /** Milliseconds for which a stopping process serves on while `/readyz` is 503, so that proxies stop sending to it first. */
  readonly stopDelayMs?: number
  /** Smallest payment that is settled on chain, in millionths of a US dollar. */
  readonly settleMicroUsdMin: bigint
  /** Most gas that one organisation may cost the operator per network and UTC day, in billionths of a US dollar. */
  readonly settleNanoUsdPerDayMax: bigint
  /** Prices of gas coins; defaults to the prices in the build. */
  readonly coinPrices?: CoinPrices
  /** Seconds for which a verified payment waits to be settled before it is voided. */
  readonly verifiedSecondsMax: number
  /** Whether the settler pays payers' fees on Tempo, within the same budget; it then needs pathUSD there. */
  readonly sponsorTempoFees: boolean
  /** Most challenges per minute for one caller of a route, where the tenant identifies the caller. */
  readonly challengesPerCallerMax: number
  /** Whether URLs of customers may be plain HTTP and lead into the deployment's own networks: for development only. */
  readonly webhooksAllowPrivate: boolean
  /** Key of the account that gives away test money, 32 bytes in hex; undefined without a faucet. */
  readonly testFaucetKey?: string | undefined
  /** Whether organisations may advance their test environment in time. */
  readonly testClock: boolean
  /** Days that rows of events, deliveries and attempts stay. */
  readonly eventsKeptDays?: number
  /** The partners that this deployment has an account with. */
  readonly partners?: PartnerAccounts
  /** URL of the sanctions list, fetched daily; undefined if the operator loads the list by hand. */
  readonly sanctionsListUrl?: string | undefined
  /** Whether screening answers test keys immediately, with documented test addresses. */
  readonly sandboxScreening: boolean
  /** The storage of the bytes of files: a directory that all processes of the deployment share, or S3-compatible storage. */
  readonly files: { readonly directory: string } | { readonly s3: S3Settings }
  /** The storage of the witness's marks, which a database restore must not touch. Default: the file storage. */
  readonly witness?: Config['files']
  /** Default and maximum life of vaults per plan, where they override the plan; -1 means without end. */
  readonly vaultTtls?: Readonly<
    Partial<Record<PlanName, { readonly secondsDefault: number; readonly secondsMax: number }>>
  >
  /** Most valid tokens and unused tickets of one vault. */
  readonly vaultTokensMax: number
}

export const poolers: readonly Pooler[] = ['none', 'session', 'transaction']
const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

type Env = Readonly<Record<string, string | undefined>>

/** Names of the environment variables that hold JSON-RPC addresses, by network. */
export function rpcVariable(network: string): string {
  return variableOf('RPC_URL', network)
}

/** Names of the environment variables that hold the address of a block explorer, by network. */
export function explorerVariable(network: string): string {
  return variableOf('EXPLORER_URL', network)
}

function variableOf(prefix: string, network: string): string {
  return `${prefix}_${network.toUpperCase().replaceAll('-', '_')}`
}

/** Reads the whole configuration of `purser serve` and reports all faults together, each with how to fix it. */
export function readConfig(
  environment: Env,
  args: readonly string[],
  networks: readonly string[],
): Config | { readonly faults: readonly ConfigFault[] } {
  const faults: ConfigFault[] = []
  const { env, names } = watchReads(environment)
  const read = createReader(env, faults)
  const keys = readKeySettings(env, faults)
  // Read by `purser admin archive`. Checked here too, since both use the same environment.
  readKeptDays(read, 'PAYMENTS_KEPT_DAYS')
  readKeptDays(read, 'AUDIT_LOG_KEPT_DAYS')
  const config: Config = {
    role: readRole(args, read),
    databaseUrl: read.required(
      'DATABASE_URL',
      'a PostgreSQL address, such as postgres://purser:…@db.internal:5432/purser',
      isPostgresUrl,
    ),
    databaseConnectionsMax: read.integer('DATABASE_CONNECTIONS_MAX', 16, 2, 500),
    databaseDirectUrl: read.optional('DATABASE_DIRECT_URL', 'the address of PostgreSQL itself', isPostgresUrl),
    databasePooler: read.oneOf('DATABASE_POOLER', poolers, 'none'),
    databaseDurability: readDurability(env, read),
    host: read.text('HOST') ?? '0.0.0.0',
    port: read.integer('PORT', 4100, 0, 65_535),
    metricsPort: read.integer('METRICS_PORT', 9464, 0, 65_535),
    baseUrl: read
      .required('BASE_URL', 'the public address of this service, such as https://pay.example.com', isWebUrl)
      .replace(/\/+$/, ''),
    dashboardUrl: read
      .required('DASHBOARD_URL', 'the address of the dashboard, such as https://app.example.com', isWebUrl)
      .replace(/\/+$/, ''),
    signIn: readSignIn(read),
    environments: readEnvironments(env, read),
    keyEncryption: keys.first,
    keyEncryptionAlso: keys.also,
    createKeyEncryptionKey: false,
    rpcUrls: readRpcUrls(read, networks),
    explorerUrls: readExplorerUrls(read, networks),
    rpcTimeoutMs: read.integer('RPC_TIMEOUT_MS', 4_000, 100, 60_000),
    eip6492Factories: read.list('EIP6492_FACTORIES'),
    logLevel: read.oneOf('LOG_LEVEL', logLevels, 'info'),
    keyLimit: {
      perSecond: read.integer('RATE_LIMIT_PER_SECOND', 200, 1, 1_000_000),
      burst: read.integer('RATE_LIMIT_BURST', 400, 1, 1_000_000),
    },
    addressLimit: {
      perSecond: read.integer('ADDRESS_RATE_LIMIT_PER_SECOND', 20, 1, 1_000_000),
      burst: read.integer('ADDRESS_RATE_LIMIT_BURST', 60, 1, 1_000_000),
    },
    organisationLimit: {
      perSecond: read.integer('ORGANISATION_RATE_LIMIT_PER_SECOND', 400, 1, 1_000_000),
      burst: read.integer('ORGANISATION_RATE_LIMIT_BURST', 800, 1, 1_000_000),
    },
    trustProxy: readProxies(read),
    connectionsMax: read.integer('CONNECTIONS_MAX', 30_000, 100, 1_000_000),
    connectionsPerAddressMax: read.integer('ADDRESS_CONNECTIONS_MAX', 1_000, 1, 1_000_000),
    bodiesBytesMax: read.integer('BODIES_MEGABYTES_MAX', 64, 16, 65_536) * 1_048_576,
    idempotencyBytesMax: read.integer('IDEMPOTENCY_MEGABYTES_MAX', 32_768, 64, 67_108_864) * 1_048_576,
    settleWaitMs: read.integer('SETTLE_WAIT_MS', 10_000, 0, 50_000),
    transferWaitMs: read.integer('TRANSFER_WAIT_MS', 20_000, 0, 50_000),
    facilitatorWaitMs: read.integer('FACILITATOR_WAIT_MS', 25_000, 1_000, 80_000),
    leaseMs: read.integer('LEASE_MS', 6_000, 1_000, 10_000),
    accessLog: read.flag('ACCESS_LOG'),
    stopDelayMs: read.integer('STOP_DELAY_MS', 5_000, 0, 60_000),
    settleMicroUsdMin: BigInt(read.integer('SETTLE_MICRO_USD_MIN', 1_000, 1_000, 1_000_000_000)),
    settleNanoUsdPerDayMax:
      BigInt(read.integer('SETTLE_MICRO_USD_PER_DAY_MAX', 50_000_000, 0, 1_000_000_000_000)) * 1_000n,
    ...readCoinPrices(read),
    verifiedSecondsMax: read.integer('VERIFIED_SECONDS_MAX', 3_600, 60, 86_400),
    sponsorTempoFees: read.flag('SPONSOR_TEMPO_FEES'),
    challengesPerCallerMax: read.integer('CHALLENGES_PER_CALLER_MAX', 20, 1, 1_000_000),
    webhooksAllowPrivate: read.flag('WEBHOOKS_ALLOW_PRIVATE'),
    partners: readPartners({ env, faults }),
    testFaucetKey: read.optional(
      'TEST_FAUCET_KEY',
      'a private key, 0x and 64 hexadecimal digits, of an account with test money only',
      isPrivateKey,
    ),
    eventsKeptDays: read.integer('EVENTS_KEPT_DAYS', 30, 30, 400),
    testClock: read.flag('TEST_CLOCK'),
    sandboxScreening: read.flag('SANDBOX_SCREENING'),
    sanctionsListUrl: read.optional('SANCTIONS_LIST_URL', 'the http(s) address of a sanctions list', isWebUrl),
    files: readFiles(read),
    ...readWitness(read),
    vaultTtls: readVaultTtls(read),
    vaultTokensMax: read.integer('VAULT_TOKENS_MAX', 10_000, 1, 100_000),
  }
  for (const factory of config.eip6492Factories.filter((one) => !/^0x[0-9a-fA-F]{40}$/.test(one)))
    read.refuse('EIP6492_FACTORIES', 'list addresses separated by commas', `${factory} is not an address`)
  faults.push(...misspelledSettings(environment, names))
  return faults.length > 0 ? { faults } : config
}

function isPrivateKey(text: string): boolean {
  return /^0x[0-9a-fA-F]{64}$/.test(text) && !/^0x0+$/.test(text)
}

/**
 * The configured waits that are too long for clients, which give up after 30 seconds by default. `inTimeMs` is the longest wait that still responds before
 * that: after the facilitator's wait, a transaction that is being signed has three more seconds.
 */
export function longWaits({ settleWaitMs, facilitatorWaitMs }: Pick<Config, 'settleWaitMs' | 'facilitatorWaitMs'>) {
  const waits = [
    { setting: 'SETTLE_WAIT_MS', waitMs: settleWaitMs, inTimeMs: 29_000 },
    { setting: 'FACILITATOR_WAIT_MS', waitMs: facilitatorWaitMs, inTimeMs: 26_000 },
  ]
  return waits.filter(({ waitMs, inTimeMs }) => waitMs > inTimeMs)
}

/** The list of faults as text for an operator. */
export function faultsAsText(faults: readonly ConfigFault[]): string {
  return `The configuration has ${faults.length} fault${faults.length === 1 ? '' : 's'}:\n${faults
    .map(({ name, fault, how }) => `  ${name}: ${fault}\n    ${how}`)
    .join('\n')}\n`
}

/** The role, from `--role` or `ROLE`. Any other argument is a fault, so that a typing error does not start another role. */
function readRole(args: readonly string[], read: Reader): Role {
  let role = read.text('ROLE') ?? 'all'
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ''
    if (arg.startsWith('--role=')) role = arg.slice('--role='.length)
    else if (arg === '--role') role = args[++index] ?? ''
    else read.refuse(arg, 'give --role all, api or work, and the rest in the environment', 'is not known')
  }
  if (role === 'all' || role === 'api' || role === 'work') return role
  read.refuse('--role', 'give all, api or work')
  return 'all'
}

/** Required with `live`, because the operator must decide which data the loss of a server may cost. */
function readDurability(env: Env, read: Reader): Durability | undefined {
  const name = 'DATABASE_DURABILITY'
  const value = env[name]
  const known = durabilities.find((durability) => durability === value)
  const how = `set it to synchronous, managed or single: whether a standby confirms each commit, a managed service promises it, or there is one server`
  if (value !== undefined && known === undefined) read.refuse(name, how)
  if (value === undefined && (env.ENVIRONMENTS ?? 'test,live').includes('live')) read.refuse(name, how, 'is missing')
  return known
}

function readEnvironments(env: Env, read: Reader): Environment[] {
  const names = (env.ENVIRONMENTS ?? 'test,live').split(',').map((name) => name.trim())
  const known = names.filter((name): name is Environment => name === 'test' || name === 'live')
  if (known.length !== names.length) read.refuse('ENVIRONMENTS', 'set it to test, live or test,live')
  return known
}

/** `VAULT_TTL_<PLAN>=<default>/<most>`, such as `24h/7d` or `30d/unlimited`. */
function readVaultTtls(read: Reader): NonNullable<Config['vaultTtls']> {
  const bounds = planNames.flatMap((plan) => {
    const name = `VAULT_TTL_${plan.toUpperCase()}`
    const value = read.text(name)
    if (value === undefined) return []
    const [usual = '', most = '', ...more] = value.split('/')
    const secondsDefault = parseDuration(usual)
    const secondsMax = most === 'unlimited' ? -1 : parseDuration(most)
    if (
      more.length === 0 &&
      typeof secondsDefault === 'number' &&
      typeof secondsMax === 'number' &&
      (secondsMax < 0 || secondsDefault <= secondsMax)
    )
      return [[plan, { secondsDefault, secondsMax }] as const]
    read.refuse(name, 'set it to <default>/<maximum>, such as 24h/7d or 30d/unlimited')
    return []
  })
  return Object.fromEntries(bounds)
}

/** S3 if its endpoint is set, otherwise a directory. There is no default directory, since files in one would be lost with it. */
function readFiles(read: Reader): Config['files'] {
  if (read.text('FILES_S3_ENDPOINT') === undefined) {
    const how =
      'an absolute directory that is kept and backed up, or name an S3-compatible storage by FILES_S3_ENDPOINT'
    return { directory: read.required('FILES_DIR', how, (value) => path.isAbsolute(value)) }
  }
  const s3 = {
    endpoint: read.required(
      'FILES_S3_ENDPOINT',
      'the address of the storage, such as https://s3.eu-central-1.amazonaws.com',
      isWebUrl,
    ),
    bucket: read.required('FILES_S3_BUCKET', 'a bucket of its own for the files'),
    region: read.text('FILES_S3_REGION') ?? 'us-east-1',
    accessKeyId: read.required('FILES_S3_ACCESS_KEY_ID', 'a key that may use that bucket alone'),
    secretAccessKey: read.required('FILES_S3_SECRET_ACCESS_KEY', 'the secret of that key'),
  }
  return { s3 }
}

/** Returns the storage of the files and of the witness's marks, as serving reads it; each is undefined if it is missing or invalid. */
export function readPlaces(env: Env): { readonly [place in 'files' | 'witness']?: Config['files'] | undefined } {
  const faults: ConfigFault[] = []
  const read = createReader(env, faults)
  const { witness } = readWitness(read)
  if (faults.length > 0) return {}
  const files = readFiles(read)
  return faults.length > 0 ? { witness } : { files, witness: witness ?? files }
}

function readWitness(read: Reader): Pick<Config, 'witness'> {
  const how = 'an absolute directory that a database restore does not reach'
  const directory = read.optional('WITNESS_DIR', how, (value) => path.isAbsolute(value))
  return directory === undefined ? {} : { witness: { directory } }
}

function readCoinPrices(read: Reader): Pick<Config, 'coinPrices'> {
  const text = read.text('COIN_PRICES')
  if (text === undefined) return {}
  const coinPrices = parseCoinPrices(text)
  if (!('fault' in coinPrices)) return { coinPrices }
  const how = 'set it to a date and US dollars per coin, such as 2026-11-22,ETH=3000,POL=0.25, or leave it out'
  read.refuse('COIN_PRICES', how, coinPrices.fault)
  return {}
}

function readRpcUrls(read: Reader, networks: readonly string[]): Config['rpcUrls'] {
  const urls: Record<string, readonly string[]> = {}
  for (const network of networks) {
    const name = rpcVariable(network)
    const listed = read.list(name)
    if (!listed.every(isWebUrl)) read.refuse(name, 'set it to one or more http(s) addresses separated by commas')
    else if (listed.length > 0) urls[network] = listed
  }
  return urls
}

function readExplorerUrls(read: Reader, networks: readonly string[]): Record<string, string | null> {
  const urls: Record<string, string | null> = {}
  for (const network of networks) {
    const name = explorerVariable(network)
    const text = read.text(name)?.trim() ?? ''
    if (text === '') continue
    if (text !== 'none' && !isWebUrl(text))
      read.refuse(name, 'set it to the http(s) address of a block explorer, or to none')
    urls[network] = text === 'none' ? null : text.replace(/\/+$/, '')
  }
  return urls
}

function readProxies(read: Reader): Config['trustProxy'] {
  const proxies = parseProxies(read.text('TRUST_PROXY') ?? '')
  if (proxies !== undefined) return proxies
  const how =
    'set it to the number of proxies before the service, such as 1, or to their networks, such as 10.0.0.0/8,fd00::/8'
  read.refuse('TRUST_PROXY', how)
  return false
}

function isWebUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}

export function isPostgresUrl(value: string): boolean {
  return !('fault' in parseAddress(value))
}
