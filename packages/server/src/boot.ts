import { fillHandler } from './chain/index.ts'
import type { Config } from './config.ts'
import { buildDeps, type Overrides } from './deps.ts'
import { paymentRelays } from './features/payments/index.ts'
import { type RelayerParts, relayHandler, relayTimings, startRelayer } from './features/relayer/index.ts'
import { testDepositHandler } from './features/testing/index.ts'
import { gaslessTransfers, transferHandler } from './features/transfers/index.ts'
import { startDepositWatcher, sweepRelays, tempoSweepHandler } from './features/wallets/index.ts'
import { WebhookWorker } from './features/webhooks/index.ts'
import { partnerPages } from './features/withdrawals/index.ts'
import { recurring } from './jobs.ts'
import { openApi, operations } from './operations.ts'
import type { Deps } from './platform/ctx.ts'
import { createAuthenticate } from './platform/http/authenticate.ts'
import { keySetPages } from './platform/http/key-set.ts'
import { metricsPage, publicPages } from './platform/http/pages.ts'
import { createHttpServer, type HttpServer } from './platform/http/server.ts'
import type { Log } from './platform/log.ts'
import { startRunner, systemCtx } from './platform/work/runner.ts'

export interface BootOptions extends Overrides {
  /** Serve `/metrics` on the main port, as `npm start` does; otherwise on `config.metricsPort`. */
  readonly metricsOnMainPort?: boolean
  /** Longest pause between two looks for deposits at a network's head; `npm start` and tests make it short. */
  readonly depositPollMsMax?: number
}

export interface RunningServer {
  readonly port: number
  readonly deps: Deps
  readonly log: Log
  /** Account that sends settlements; the operator keeps gas on it. */
  readonly settlerAddress: string
  /** Takes no new work, finishes what is under way, then lets go of everything in order. */
  stop(): Promise<void>
}

/** Starts the service in the configured role. What was started is stopped again when a later part fails. */
export async function bootServer(config: Config, options: BootOptions = {}): Promise<RunningServer> {
  const stops: (() => Promise<void>)[] = []
  const stop = async (): Promise<void> => {
    for (const step of stops.splice(0).reverse()) await step()
  }
  try {
    const built = await buildDeps(config, options)
    stops.push(built.close)
    built.deps.chains.watch()
    if (config.role !== 'api') stops.push(startWork(built, options, config.leaseMs ?? leaseMsDefault))
    const { port, metricsPort } = await startHttp(config, options, built, stops)
    built.deps.log.info({ port, metricsPort, role: config.role, settler: built.settlerAddress }, 'purser is up')
    return { port, deps: built.deps, log: built.deps.log, settlerAddress: built.settlerAddress, stop }
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}

type Built = Awaited<ReturnType<typeof buildDeps>>

/** Where the configuration says nothing. */
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
  built.onDeliveriesWaiting(() => webhooks.wake())
  const runner = startRunner(deps, recurring, leaseMs)
  const deposits = startDepositWatcher(deps, depositPollMsMax === undefined ? {} : { pollMsMax: depositPollMsMax })
  return async () => {
    const planners = [relayer, runner, deposits]
    await Promise.all(planners.map((planner) => planner.stop()))
    // Last, since those may still have written events; what it leaves is another process's.
    await webhooks.stop()
    await deps.lanes.stop()
  }
}

/** What the relayer works with: the features whose signatures it sends, and the settler's lane. */
export function relayerParts(deps: Deps, leaseMs: number): RelayerParts {
  const purposes = [paymentRelays(deps), sweepRelays(deps), gaslessTransfers(deps)]
  return {
    ctx: systemCtx(deps),
    networks: deps.chains.configured.filter(({ settlesEip3009 }) => settlesEip3009),
    purposes: new Map(purposes.map((purpose) => [purpose.purpose, purpose])),
    timings: relayTimings(leaseMs),
  }
}

interface Ports {
  /** 0 where the role serves no API. */
  readonly port: number
  readonly metricsPort: number | undefined
}

/** The API where the role has it, and `/metrics` of every role on a port of its own: the workers are what an operator watches. */
async function startHttp(
  config: Config,
  options: BootOptions,
  built: Built,
  stops: (() => Promise<void>)[],
): Promise<Ports> {
  const { deps } = built
  const metrics = metricsPage(deps)
  const common = {
    deps,
    authenticate: createAuthenticate(built.keys.findKey, config.environments),
    keyLimit: config.keyLimit,
    addressLimit: config.addressLimit,
    trustProxy: config.trustProxy,
  }
  const serve = async (server: HttpServer, port: number): Promise<number> => {
    const listening = await server.listen(port, config.host)
    stops.push(() => closeWithin(server, deps.log))
    return listening.port
  }
  let port = 0
  if (config.role !== 'work') {
    const keySet = keySetPages(deps.baseUrl, deps.serviceSeal.publicKeys)
    const pages = [...publicPages(deps, operations, openApi), ...keySet, ...partnerPages(deps)]
    const all = options.metricsOnMainPort === true ? [...pages, metrics] : pages
    port = await serve(createHttpServer({ ...common, operations, pages: all }), config.port)
  }
  if (options.metricsOnMainPort === true || config.metricsPort === undefined) return { port, metricsPort: undefined }
  const metricsPort = await serve(createHttpServer({ ...common, operations: [], pages: [metrics] }), config.metricsPort)
  return { port, metricsPort }
}

const closeMsMax = 60_000

/** Waits for every request under way; a client that never finishes is given up after a minute. */
async function closeWithin(server: HttpServer, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn('a request did not finish in time and is cut')
      resolve()
    }, closeMsMax)
  })
  await Promise.race([server.close(), late])
  clearTimeout(timer)
}
