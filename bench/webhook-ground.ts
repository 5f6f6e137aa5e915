import { createPublicKey, verify } from 'node:crypto'
import { verifyServiceWebhook, verifyStandardWebhook, verifyWebhookByKey } from '@purser/protocol'
import { z } from 'zod'
import { systemClock } from '../packages/server/src/platform/clock.ts'
import { type Db, openDb, sql } from '../packages/server/src/platform/db/db.ts'
import { insertEvents } from '../packages/server/src/platform/events.ts'
import { id } from '../packages/server/src/platform/ids.ts'
import { createLog } from '../packages/server/src/platform/log.ts'
import { systemRandom } from '../packages/server/src/platform/random.ts'
import { type Child, startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { deleteRequest, getRequest, postRequest, runLoad } from './load.ts'
import { startHome } from './sides.ts'
import { startVaultService, type VaultService } from './vault-service.ts'

/** A webhook of the benchmark's organisation. Its path is its name at the receiver. */
export interface Hook {
  readonly id: string
  readonly secret: string
  readonly path: string
}

export type Arrived = z.output<typeof Arrived>

/** Our service with a database, a receiver in a process of its own, and an organisation that events happen to. */
export interface WebhookGround {
  readonly service: VaultService
  readonly receiver: { readonly child: Child; readonly port: number }
  hook(path: string, events: readonly string[]): Promise<Hook>
  deleteHook(hook: Hook): Promise<void>
  /** Commits events in one transaction, from another process than the service's; returns their ids and when they were committed. */
  publish(events: readonly NewEvent[]): Promise<{ readonly ids: readonly string[]; readonly at: number }>
  countArrived(): Promise<number>
  arrivedSince(count: number): Promise<readonly Arrived[]>
  /** Attempts on record of these webhooks, and how many deliveries, or events, still wait. */
  recorded(hooks: readonly Hook[]): Promise<{ readonly attempts: number; readonly waiting: number }>
  /** Returns the number of those that were kept whole and are not signed as they must be. */
  countUnsigned(arrived: readonly Arrived[], hooks: readonly Hook[]): Promise<number>
}

export interface NewEvent {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

const Arrived = z.object({ path: z.string(), eventId: z.string(), at: z.number(), bytes: z.string().optional() })
const Count = z.object({ count: z.number() })
const Made = z.object({ id: z.string(), secret: z.string() })
const KeySet = z.object({ keys: z.array(z.object({ x: z.string() })) })
const responseMsMax = 30_000

export async function startWebhookGround(closing: Closing): Promise<WebhookGround> {
  const home = await startHome()
  closing.add(() => home.stop())
  const child = await startChild('webhook-receiver.ts', {})
  closing.add(() => child.stop())
  const receiver = { child, port: Number(child.ready('port')) }
  const service = await startVaultService(home, closing)
  const db = openDb({ url: home.postgres.url, connectionsMax: 4, log: createLog({ level: 'warn' }) })
  closing.add(() => db.close())
  const { id: organisationId } = z.object({ id: id('org') }).parse(await get(service, '/organisations/current'))
  const publisher = {
    clock: systemClock,
    random: systemRandom,
    tenant: { organisationId, environment: 'test' as const },
  }
  return {
    service,
    receiver,
    async hook(path, events) {
      const body = JSON.stringify({ url: `http://127.0.0.1:${receiver.port}${path}`, events })
      const made = await ask(service.port, postRequest('/webhooks', body, service.headers))
      return { ...Made.parse(made), path }
    },
    async deleteHook(hook) {
      await ask(service.port, deleteRequest(`/webhooks/${hook.id}`, service.headers))
    },
    async publish(events) {
      const byType = [...Map.groupBy(events, ({ type }) => type)]
      const ids = await db.tx(async (tx) => {
        const written: string[] = []
        for (const [type, some] of byType) {
          const payloads = some.map(({ payload }) => payload)
          written.push(...(await insertEvents(publisher, tx, type, payloads)))
        }
        return written
      })
      return { ids, at: now() }
    },
    countArrived: async () => Count.parse(await ask(receiver.port, getRequest('/count'))).count,
    arrivedSince: async (count) =>
      z.array(Arrived).parse(await ask(receiver.port, getRequest(`/arrived?from=${count}`))),
    recorded: (hooks) => countRecorded(db, hooks),
    async countUnsigned(arrived, hooks) {
      const { keys } = KeySet.parse(
        await get(service, `/.well-known/jwks.json?organisation=${organisationId}&environment=test`),
      )
      const secrets = new Map(hooks.map(({ path, secret }) => [path, secret]))
      const kept = arrived.flatMap(({ path, bytes }) => (bytes === undefined ? [] : [{ path, bytes }]))
      const signed = await Promise.all(
        kept.map(({ path, bytes }) => isSigned(Buffer.from(bytes, 'base64'), secrets.get(path) ?? '', keys)),
      )
      return signed.filter((is) => !is).length
    },
  }
}

/** The machine's clock, in milliseconds and parts of them: processes compare what they note by it. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

async function countRecorded(db: Db, hooks: readonly Hook[]) {
  const ids = hooks.map((hook) => hook.id)
  const { attempts, waiting } = await db.one(
    z.object({ attempts: z.bigint(), waiting: z.bigint() }),
    sql`
    select (select count(*) from webhook_attempts where webhook_id = any(${ids})) as attempts,
      (select count(*) from events_due) + (select count(*) from events_postponed) +
      (select count(*) from webhook_deliveries where webhook_id = any(${ids}) and status = 'pending') as waiting`,
  )
  return { attempts: Number(attempts), waiting: Number(waiting) }
}

async function isSigned(request: Buffer, secret: string, keys: readonly { readonly x: string }[]): Promise<boolean> {
  const [head = '', ...rest] = request.toString('utf8').split('\r\n\r\n')
  const headers = new Map(
    head
      .split('\r\n')
      .slice(1)
      .map((line) => splitHeader(line)),
  )
  const of = (name: string) => headers.get(name) ?? ''
  const body = Buffer.from(rest.join('\r\n\r\n'))
  const moment = { nowSeconds: Number(of('webhook-timestamp')) }
  const own = { timestamp: of('x-service-timestamp'), signature: of('x-service-signature'), body }
  const standard = {
    id: of('webhook-id'),
    timestamp: of('webhook-timestamp'),
    signature: of('webhook-signature'),
    body,
  }
  const publicKeys = keys.map(({ x }) => Buffer.from(x, 'base64url'))
  const faults = [
    verifyServiceWebhook(own, [secret], moment),
    verifyStandardWebhook(standard, [secret], moment),
    await verifyWebhookByKey(standard, publicKeys, moment, verifyEd25519),
  ]
  return faults.every((fault) => fault === undefined)
}

function splitHeader(line: string): [string, string] {
  const at = line.indexOf(': ')
  return [line.slice(0, at).toLowerCase(), line.slice(at + 2)]
}

async function verifyEd25519(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const x = Buffer.from(key).toString('base64url')
  return verify(null, message, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature)
}

function get(service: VaultService, path: string): Promise<unknown> {
  return ask(service.port, getRequest(path, service.headers))
}

async function ask(port: number, request: Buffer): Promise<unknown> {
  const { responses } = await runLoad({ port, connections: 1, requests: [request], msMax: responseMsMax })
  const { status = 0, body = '' } = responses[0] ?? {}
  if (status < 200 || status > 299) throw new Error(`${request.toString('latin1').split('\r\n')[0]}: ${status} ${body}`)
  return body === '' ? undefined : JSON.parse(body)
}
