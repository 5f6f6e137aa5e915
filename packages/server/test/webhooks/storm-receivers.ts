import { createHash, createHmac, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyServiceWebhook, verifyStandardWebhook, verifyWebhookByKey } from '@purser/protocol'
import { z } from 'zod'
import { type Manner, manners } from './storm-manners.ts'
import { TestMessage } from './storm-talk.ts'

/*
 * The servers of several customers in one separate process: they check the signatures of every request, record what
 * came, and answer each in its own way.
 */

const Body = z.object({ eventId: z.string(), type: z.string(), payload: z.record(z.string(), z.unknown()) })

interface Known {
  readonly body: string
  taken: boolean
}

interface Place {
  readonly manner: Manner
  readonly known: Map<string, Known>
  arrived: number
  duplicates: number
  unsigned: number
  unlike: number
  restarts: number
}

interface Keys {
  readonly secrets: Readonly<Record<string, string>>
  readonly publicKeys: readonly Uint8Array[]
}

let keys: Keys = { secrets: {}, publicKeys: [] }
const keyObjects = new Map<string, KeyObject>()
const tellMs = 50

const places = await Promise.all(manners.map(open))
process.on('message', (message) => {
  const command = TestMessage.parse(message)
  if (command.kind === 'keys')
    keys = { secrets: command.secrets, publicKeys: command.publicKeys.map((x) => Buffer.from(x, 'base64url')) }
  else process.send?.({ kind: 'report', places: places.map(({ place }) => reportOf(place)) })
})
process.once('disconnect', () => process.exit(0))
process.send?.({
  kind: 'listening',
  ports: Object.fromEntries(places.map(({ place, port }) => [place.manner.name, port])),
})
setInterval(() => {
  const arrived = places.reduce((sum, { place }) => sum + place.known.size, 0)
  process.send?.({ kind: 'arrived', count: arrived })
}, tellMs)

async function open(manner: Manner): Promise<{ readonly place: Place; readonly port: number }> {
  const place = { manner, known: new Map(), arrived: 0, duplicates: 0, unsigned: 0, unlike: 0, restarts: 0 }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', async () => {
      await receive(place, { request, response, body: Buffer.concat(chunks) })
      restartWhereDue()
    })
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const restartWhereDue = (): void => {
    const { every, goneMs, times } = manner.restarts ?? { every: 0, goneMs: 0, times: 0 }
    if (!server.listening || place.restarts >= times || place.known.size < (place.restarts + 1) * every) return
    place.restarts += 1
    server.close()
    server.closeAllConnections()
    setTimeout(() => listen(port), goneMs)
  }
  return { place, port }
}

interface Request {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: Buffer
}

async function receive(place: Place, { request, response, body }: Request): Promise<void> {
  const text = body.toString('utf8')
  const { eventId } = Body.parse(JSON.parse(text))
  const digest = createHash('sha256').update(body).digest('base64')
  place.arrived += 1
  if (request.headers['webhook-id'] !== eventId || !(await isSigned(place, request, body))) place.unsigned += 1
  const known = place.known.get(eventId)
  if (known === undefined) {
    const fresh = { body: digest, taken: false }
    place.known.set(eventId, fresh)
    response.once('finish', () => {
      fresh.taken = response.statusCode === 200
    })
    return place.manner.first(place.known.size, response, request)
  }
  if (known.body !== digest) place.unlike += 1
  if (known.taken) place.duplicates += 1
  known.taken = true
  response.writeHead(200).end()
}

async function isSigned({ manner }: Place, { headers }: IncomingMessage, body: Uint8Array): Promise<boolean> {
  const of = (name: string) => String(headers[name] ?? '')
  const secrets = [keys.secrets[manner.name] ?? '']
  const moment = { nowSeconds: Math.floor(Date.now() / 1_000) }
  const own = { timestamp: of('x-service-timestamp'), signature: of('x-service-signature'), body }
  const standard = {
    id: of('webhook-id'),
    timestamp: of('webhook-timestamp'),
    signature: of('webhook-signature'),
    body,
  }
  const faults = [
    verifyServiceWebhook(own, secrets, moment, hmac),
    verifyStandardWebhook(standard, secrets, moment, hmac),
    await verifyWebhookByKey(standard, keys.publicKeys, moment, verifyEd25519),
  ]
  return faults.every((fault) => fault === undefined)
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest()
}

async function verifyEd25519(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const x = Buffer.from(key).toString('base64url')
  const known = keyObjects.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  keyObjects.set(x, known)
  return verify(null, message, known, signature)
}

function reportOf({ manner, known, arrived, duplicates, unsigned, unlike, restarts }: Place) {
  return { name: manner.name, eventIds: [...known.keys()], arrived, duplicates, unsigned, unlike, restarts }
}
