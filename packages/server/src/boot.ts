import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from './config.ts'
import type { Overrides } from './deps.ts'
import { openSignIn, type SignIn } from './features/people/index.ts'
import { startRequestLog } from './features/requests/index.ts'
import { startDepositWatcher } from './features/wallets/index.ts'
import { openMail } from './mail.ts'
import { createModules, type Deps } from './modules.ts'
import { showPool, showQueues } from './monitoring/gauges.ts'
import { showSettler } from './monitoring/settler.ts'
import { makeOpenApi, operations } from './operations.ts'
import { createAuthenticate } from './platform/http/authenticate.ts'
import { dashboardPages } from './platform/http/dashboard.ts'
import { keySetPages } from './platform/http/key-set.ts'
import { healthPage, metricsPage, publicPages } from './platform/http/pages.ts'
import { createHttpServer, type HttpServer, type ServerLimits } from './platform/http/server.ts'
import type { Log } from './platform/log.ts'
import type { BoundOperation } from './platform/operation.ts'
import type { BoundTask } from './platform/recurring-task.ts'
import { startRunner } from './platform/work/runner.ts'

export interface BootOptions extends Overrides {
  /** Whether `/metrics` is served on the main port, as by `npm start`; otherwise it is on `config.metricsPort`. */
  readonly metricsOnMainPort?: boolean
  /** Longest interval between two polls of a network's head for deposits; `npm start` and tests make it short. */
  readonly depositPollMsMax?: number
}

export interface RunningServer {
  readonly port: number
  readonly deps: Deps
  /** The operations of all features, as they are served. */
  readonly operations: readonly BoundOperation[]
  /** The recurring work of all features. */
  readonly loops: readonly BoundTask[]
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
    const built = await createModules(config, options)
    stops.push(built.close)
    built.deps.chains.watch()
    if (config.role !== 'api') stops.push(startWork(built, options))
    const { port, metricsPort } = await startHttp(config, options, { ...built, life }, stops)
    built.deps.log.info({ port, metricsPort, role: config.role, settler: built.deps.settlerAddress }, 'purser is up')
    const { deps, operations: served, loops } = built
    return { port, deps, operations: served, loops, log: deps.log, settlerAddress: deps.settlerAddress, stop }
  } catch (error) {
    // The error that began this is thrown.
    await stopAll().catch(() => undefined)
    throw error
  }
}

type Built = Awaited<ReturnType<typeof createModules>>
type StoppableModules = Built & { readonly life: { readonly isStopping: boolean } }

function startWork(built: Built, { depositPollMsMax }: BootOptions): () => Promise<void> {
  const { deps } = built
  deps.lanes.start(built.laneHandlers)
  const relayer = built.relayer.start()
  const webhooks = built.webhooks.startDelivering()
  const runner = startRunner(deps, built.loops, built.leaseMs)
  const deposits = startDepositWatcher(deps, depositPollMsMax === undefined ? {} : { pollMsMax: depositPollMsMax })
  return async () => {
    const planners = [relayer, runner, deposits]
    await Promise.all(planners.map((planner) => planner.stop()))
    // Webhooks stop last, since the other parts may still write events; another process delivers what remains.
    await webhooks.stop()
    await deps.lanes.stop()
  }
}

interface Listening {
  /** 0 if the role serves no API. */
  readonly port: number
  readonly metricsPort: number | undefined
}

/**
 * Serves the API if the role has it, and `/metrics` and `/healthz` of every role on a separate port, since operators monitor the workers. Both servers
 * close at once: one after the other could take twice the longest wait for requests under way.
 */
async function startHttp(
  config: Config,
  options: BootOptions,
  built: StoppableModules,
  stops: (() => Promise<void>)[],
): Promise<Listening> {
  const { deps } = built
  const metrics = metricsPage(deps, () => showQueues(deps))
  showPool(deps, config.databaseConnectionsMax)
  showSettler(deps)
  const common = commonOptions(config, built)
  const serve = async (server: HttpServer, port: number): Promise<number> => {
    const listening = await server.listen(port, config.host)
    servers.push(server)
    return listening.port
  }
  const servers: HttpServer[] = []
  const closeAll = async (): Promise<void> => {
    await Promise.all(servers.map((server) => closeWithin(server, deps.log)))
  }
  const api = config.role === 'work' ? undefined : await apiOptions(config, built, stops)
  stops.push(closeAll)
  const pages = options.metricsOnMainPort === true ? [metrics] : []
  const port =
    api === undefined
      ? 0
      : await serve(createHttpServer({ ...common, ...api, pages: [...api.pages, ...pages] }), config.port)
  if (options.metricsOnMainPort === true || config.metricsPort === undefined) return { port, metricsPort: undefined }
  const own = { ...common, operations: [], pages: [healthPage, metrics] }
  const metricsPort = await serve(createHttpServer(own), config.metricsPort)
  return { port, metricsPort }
}

/** The options of both servers. */
function commonOptions(config: Config, { deps, findKey }: Built) {
  return {
    deps,
    authenticate: createAuthenticate(findKey, config.environments),
    keyLimit: config.keyLimit,
    addressLimit: config.addressLimit,
    organisationLimit: config.organisationLimit,
    trustProxy: config.trustProxy,
    accessLog: config.accessLog === true ? deps.log : undefined,
    limits: serverLimits(config),
  }
}

/** The operations and pages of the API, with the sign-in and the request log. */
async function apiOptions(config: Config, built: StoppableModules, stops: (() => Promise<void>)[]) {
  const { deps } = built
  const signIn = await startSignIn(config, built, stops)
  const requestLog = startRequestLog(deps)
  stops.push(() => requestLog.stop())
  const pages = [
    ...publicPages(deps, operations, makeOpenApi, () => built.life.isStopping),
    ...keySetPages(deps.baseUrl, deps.serviceSeal),
    ...built.pages,
    ...signIn.pages,
    ...dashboardPages(),
  ]
  return { operations: built.operations, pages, people: signIn.people, onResponse: requestLog.record }
}

async function startSignIn(config: Config, built: Built, stops: (() => Promise<void>)[]): Promise<SignIn> {
  const { isSignUpOpen = false, issuers = [], smtp } = config.signIn ?? {}
  const mail = smtp === undefined ? undefined : await openMail(smtp)
  const pool = built.opened.openSignInPool()
  stops.push(async () => {
    mail?.close()
    await pool.end()
  })
  const secret = built.opened.signInSecret()
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
