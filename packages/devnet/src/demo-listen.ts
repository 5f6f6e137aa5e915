import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { unwrap, type WebhookEvent, WebhookVerificationError } from '@purser/sdk/webhooks'
import { endChild, guardChild } from './child-guard.ts'
import type { Research } from './demo-session.ts'
import type { DevRecord } from './dev-file.ts'
import { expectTrue } from './narrator.ts'
import { isRecord } from './rpc.ts'

/** A delivery, and the event in it if its signature was valid. */
interface Delivery {
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  readonly event: WebhookEvent
}

/** A server that is not reachable from outside, and `purser listen`, which forwards the organisation's events to it. */
export interface Listening {
  readonly url: string
  readonly deliveries: readonly Delivery[]
  /** Returns the number of requests that were not signed by the service. */
  refused(): number
  readonly secret: Promise<string>
  /**
   * Resolves with the first delivery, past or future, that the predicate accepts. Rejects once no delivery can arrive
   * any more.
   */
  until(isIt: (delivery: Delivery) => boolean): Promise<Delivery>
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url))
/** The demo fails when a delivery takes longer. */
const waitMsMax = 20_000

/** Starts both. `purser listen` requests everything since now, so events from before it is up are delivered too. */
export async function startListening({ baseUrl, apiKey }: DevRecord): Promise<Listening> {
  const since = new Date().toISOString()
  const deliveries: Delivery[] = []
  const changed = new EventTarget()
  const greeted = Promise.withResolvers<string>()
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => undefined)
  let refused = 0
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    // `purser listen` prints its secret before it sends anything, but the delivery may be read first.
    const event = eventIn(body, request.headers, await greeted.promise)
    if (event === undefined) refused += 1
    else deliveries.push({ headers: request.headers, body, event })
    response.writeHead(event === undefined ? 400 : 204).end()
    changed.dispatchEvent(new Event('delivery'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/hook`
  const args = [program, 'listen', '--forward-to', url, '--since', since, '--format', 'json']
  const env = { PATH: process.env.PATH, PURSER_BASE_URL: baseUrl, PURSER_API_KEY: apiKey }
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const release = guardChild(child, 'SIGKILL')
  child.once('exit', () => ended.reject(new Error('purser listen ended')))
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message: unknown = JSON.parse(line)
    if (isRecord(message) && message.kind === 'listening') greeted.resolve(String(message.secret))
  })
  return {
    url,
    deliveries,
    refused: () => refused,
    secret: greeted.promise,
    until: (isIt) => Promise.race([first(deliveries, changed, isIt), ended.promise]),
    async stop() {
      await endChild(child, ['SIGINT', 'SIGKILL'])
      release()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function first(
  deliveries: readonly Delivery[],
  changed: EventTarget,
  isIt: (delivery: Delivery) => boolean,
): Promise<Delivery> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the delivery did not come')), waitMsMax)
    const look = () => {
      const found = deliveries.find(isIt)
      if (found === undefined) return
      clearTimeout(timer)
      changed.removeEventListener('delivery', look)
      resolve(found)
    }
    changed.addEventListener('delivery', look)
    look()
  })
}

/** Returns the event, or undefined for a request that the service did not sign. */
function eventIn(body: Buffer, headers: IncomingMessage['headers'], secret: string): WebhookEvent | undefined {
  try {
    return unwrap(body, headers, secret)
  } catch (error) {
    if (error instanceof WebhookVerificationError) return undefined
    throw error
  }
}

/** Checks that the provider's machine received every event that the agent saw, signed by the service. */
export async function checkDeliveries(listening: Listening, { vaultId }: Research) {
  const { event, body, headers } = await listening.until(
    (delivery) => delivery.event.type === 'vault.sealed' && delivery.event.payload.vaultId === vaultId,
  )
  expectTrue(listening.refused() === 0, `${listening.refused()} deliveries were not signed`)
  const changed = Buffer.from(body)
  changed[changed.length - 3] = (changed[changed.length - 3] ?? 0) ^ 1
  expectTrue(
    eventIn(changed, headers, await listening.secret) === undefined,
    'a changed body passes the signature check',
  )
  const types = new Set(listening.deliveries.map((delivery) => delivery.event.type))
  const count = `${listening.deliveries.length} deliveries, all signed, of ${[...types].sort().join(', ')}`
  return { value: undefined, summary: `POST ${listening.url}: vault.sealed, ${event.eventId}; ${count}` }
}
