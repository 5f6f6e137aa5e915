import { setTimeout as delay } from 'node:timers/promises'
import { fillHandler } from './chain/index.ts'
import type { Config } from './config.ts'
import { buildDeps, type Overrides } from './deps.ts'
import { paymentRelays } from './features/payments/index.ts'
import type { SignIn } from './features/people/index.ts'
import { type RelayerParts, relayHandler, relayTimings, startRelayer } from './features/relayer/index.ts'
import { startRequestLog } from './features/requests/index.ts'
import { testDepositHandler } from './features/testing/index.ts'
import { gaslessTransfers, transferHandler, watchedPayments } from './features/transfers/index.ts'
import { startDepositWatcher, sweepRelays, tempoSweepHandler } from './features/wallets/index.ts'
import { WebhookWorker } from './features/webhooks/index.ts'
import { partnerPages } from './features/withdrawals/index.ts'
import { recurring } from './jobs.ts'
import { openMail } from './mail.ts'
import { openApi, operations } from './operations.ts'
import type { Deps } from './platform/ctx.ts'
import { createAuthenticate } from './platform/http/authenticate.ts'
import { dashboardPages } from './platform/http/dashboard.ts'
import { keySetPages } from './platform/http/key-set.ts'
import { metricsPage, publicPages } from './platform/http/pages.ts'
import { createHttpServer, type HttpServer, type ServerLimits } from './platform/http/server.ts'
import type { Log } from './platform/log.ts'
import { startRunner, systemCtx } from './platform/work/runner.ts'
import { showQueues } from './queues/show.ts'

export interface BootOptions extends Overrides {
  /** Serve `/metrics` on the main port, as `npm start` does; otherwise on `config.metricsPort`. */
  readonly metricsOnMainPort?: boolean
  /** Longest interval between two polls of a network's head for deposits; `npm start` and tests make it short. */
  readonly depositPollMsMax?: number
}

export interface RunningServer {
  readonly port: number
  readonly deps: Deps
  readonly log: Log
  /** Account that sends settlements; the operator funds its gas. */
  readonly settlerAddress: string
  /** Reports not ready for `stopDelayMs`, then accepts no new work, finishes the work in progress, and releases all resources in order. */
  stop(): Promise<void>
}

/** Starts the service in the configured role. If a part fails to start, the parts before it are stopped. */
export async function bootServer(config: Config, options: BootOptions = {}): Promise<RunningServer> {
  const stops: (() => Promise<void>)[] = []
  const life = { isStopping: false }
  const stopAll = async (): Promise<void> => {
    for (const step of stops.splice(0).reverse()) await step()
  }
  const stop = async (): Promise<void> => {
    life.isStopping = true
    if (config.role !== 'work' && config.stopDelayMs !== undefined) await delay(config.stopDelayMs)
    await stopAll()
  }
  try {
    const built = await buildDeps(config, options)
    stops.push(built.close)
    built.deps.chains.watch()
    if (config.role !== 'api') stops.push(startWork(built, options, config.leaseMs ?? leaseMsDefault))
    const { port, metricsPort } = await startHttp(config, options, { ...built, life }, stops)
    built.deps.log.info({ port, metricsPort, role: config.role, settler: built.settlerAddress }, 'purser is up')
    return { port, deps: built.deps, log: built.deps.log, settlerAddress: built.settlerAddress, stop }
  } catch (error) {
    await stopAll().catch(() => undefined)
    throw error
  }
}

type Built = Awaited<ReturnType<typeof buildDeps>>

/** Used if the configuration sets no lease. */
const leaseMsDefault = 6_000

function startWork(built: Built, { depositPollMsMax }: BootOptions, leaseMs: number): () => Promise<void> {
  const { deps } = built
  const relaying = relayerParts(deps, leaseMs)
  deps.lanes.start([
    fillHandler,
    relayHandler(relaying),
    transferHandler(deps),
    tempoSweepHandler(deps),
    testDepositHandler(deps),
  ])
  const relayer = startRelayer(relaying)
  built.onSettlementWanted(() => relayer.notify())
  const webhooks = new WebhookWorker(deps)
  built.onDeliveriesWaiting({ waiting: () => webhooks.wake(), committed: () => webhooks.wakeForEvents() })
  const runner = startRunner(deps, recurring, leaseMs)
  const deposits = startDepositWatcher(deps, depositPollMsMax === undefined ? {} : { pollMsMax: depositPollMsMax })
  return async () => {
    const planners = [relayer, runner, deposits]
    await Promise.all(planners.map((planner) => planner.stop()))
    // Webhooks stop last, since the other parts may still write events; another process delivers what remains.
    await webhooks.stop()
    await deps.lanes.stop()
  }
}

/** Dependencies of the relayer: the features whose signatures it sends, and the settler's lane. */
export function relayerParts(deps: Deps, leaseMs: number): RelayerParts {
  const purposes = [paymentRelays(deps), sweepRelays(deps), gaslessTransfers(deps), watchedPayments(deps)]
  return {
    ctx: systemCtx(deps),
    networks: deps.chains.configured.filter(({ settlesEip3009 }) => settlesEip3009),
    purposes: new Map(purposes.map((purpose) => [purpose.purpose, purpose])),
    timings: relayTimings(leaseMs),
  }
}

interface Ports {
  /** 0 if the role serves no API. */
  readonly port: number
  readonly metricsPort: number | undefined
}

/** Serves the API if the role has it, and `/metrics` of every role on a separate port, since operators monitor the workers. */
async function startHttp(
  config: Config,
  options: BootOptions,
  built: Built & { readonly life: { readonly isStopping: boolean } },
  stops: (() => Promise<void>)[],
): Promise<Ports> {
  const { deps } = built
  const metrics = metricsPage(deps, () => showQueues(deps))
  const common = {
    deps,
    authenticate: createAuthenticate(built.keys.findKey, config.environments),
    keyLimit: config.keyLimit,
    addressLimit: config.addressLimit,
    organisationLimit: config.organisationLimit,
    trustProxy: config.trustProxy,
    accessLog: config.accessLog === true ? deps.log : undefined,
    limits: serverLimits(config),
  }
  const serve = async (server: HttpServer, port: number): Promise<number> => {
    const listening = await server.listen(port, config.host)
    stops.push(() => closeWithin(server, deps.log))
    return listening.port
  }
  let port = 0
  if (config.role !== 'work') {
    const signIn = await startSignIn(config, built, stops)
    const keySet = keySetPages(deps.baseUrl, deps.serviceSeal.publicKeys)
    const pages = [
      ...publicPages(deps, operations, openApi, () => built.life.isStopping),
      ...keySet,
      ...partnerPages(deps),
      ...signIn.pages,
      ...dashboardPages(),
    ]
    const all = options.metricsOnMainPort === true ? [...pages, metrics] : pages
    const requestLog = startRequestLog(deps)
    stops.push(() => requestLog.stop())
    const own = { ...common, operations, pages: all, people: signIn.people, onAnswer: requestLog.record }
    port = await serve(createHttpServer(own), config.port)
  }
  if (options.metricsOnMainPort === true || config.metricsPort === undefined) return { port, metricsPort: undefined }
  const metricsPort = await serve(createHttpServer({ ...common, operations: [], pages: [metrics] }), config.metricsPort)
  return { port, metricsPort }
}

/** better-auth is loaded where people sign in, and not by workers. */
async function startSignIn(config: Config, built: Built, stops: (() => Promise<void>)[]): Promise<SignIn> {
  const { openSignIn } = await import('./features/people/sign-in.ts')
  const { isSignUpOpen = false, issuers = [], smtp } = config.signIn ?? {}
  const mail = smtp === undefined ? undefined : await openMail(smtp)
  const pool = built.openSignInPool()
  stops.push(async () => {
    mail?.close()
    await pool.end()
  })
  const secret = built.signInSecret()
  const { dashboardUrl } = config
  return openSignIn(built.deps, { secret, pool, dashboardUrl, isSignUpOpen, issuers, sendMail: mail?.send })
}

function serverLimits({ connectionsMax, connectionsPerAddressMax, bodiesBytesMax }: Config): Partial<ServerLimits> {
  return {
    ...(connectionsMax !== undefined && { connectionsMax }),
    ...(connectionsPerAddressMax !== undefined && { connectionsPerAddressMax }),
    ...(bodiesBytesMax !== undefined && { bodiesBytesMax }),
  }
}

const closeMsMax = 60_000

/** Waits for all requests in progress; a request that does not finish within a minute is aborted. */
async function closeWithin(server: HttpServer, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn('a request did not finish in time and is aborted')
      resolve()
    }, closeMsMax)
  })
  await Promise.race([server.close(), late])
  clearTimeout(timer)
}
