import { z } from 'zod'
import type { Deps } from '../src/platform/ctx.ts'
import type { Db } from '../src/platform/db/db.ts'
import { unauthorized } from '../src/platform/http/authenticate.ts'
import { createHttpServer, type HttpOptions, type HttpServer } from '../src/platform/http/server.ts'
import { bindOperations, operationFor } from '../src/platform/operation.ts'
import { openCursor, PageQuery, pageOf } from '../src/platform/wire.ts'
import { toyDeps } from './toy-deps.ts'

const operation = operationFor<Deps>()

/** The servers of a test, the credentials that they looked up, and what their slow requests wait for. */
export const toys = {
  pending: Promise.withResolvers<void>(),
  looked: [] as string[],
  servers: [] as HttpServer[],
}

/** Forgets what earlier tests did. */
export function beginToys(): void {
  Object.assign(toys, { pending: Promise.withResolvers<void>(), looked: [], servers: [] })
}

/** Ends the servers and the requests that wait. */
export async function endToys(): Promise<void> {
  toys.pending.resolve()
  await Promise.all(toys.servers.map((server) => server.close()))
}

const operations = [
  operation({
    id: 'toys.create',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys',
    summary: 'Make toys.',
    input: z.strictObject({ name: z.string(), count: z.int().default(1) }),
    output: z.strictObject({ bytes: z.int() }),
    cost: ({ count }) => count,
    async run(_ctx, { body }) {
      if (body.name === 'slow') await toys.pending.promise
      return { bytes: body.name.length }
    },
  }),
  operation({
    id: 'toys.keep',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/keep',
    summary: 'Keep a toy, or look at it.',
    settingCost: 2_000,
    input: z.strictObject({ name: z.string(), isKept: z.boolean().default(true) }),
    leavesNothing: ({ isKept }) => !isKept,
    output: z.string(),
    run: (_ctx, { body }) => body.name,
  }),
  operation({
    id: 'toys.measure',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/measure',
    summary: 'Count the bytes of a toy.',
    streamsInput: { mediaType: 'application/octet-stream', schema: { type: 'string', format: 'binary' } },
    output: z.strictObject({ bytes: z.int() }),
    async run(_ctx, { stream }) {
      let bytes = 0
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      stream?.on('end', resolve).on('error', reject)
      stream?.on('data', (chunk) => {
        bytes += chunk.length
      })
      await promise
      return { bytes }
    },
  }),
  operation({
    id: 'toys.large',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/toys/large',
    summary: 'Get a large toy.',
    output: z.string(),
    run: () => 'y'.repeat(64_000_000),
  }),
  operation({
    id: 'toys.offer',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/offer',
    summary: 'Offer a toy.',
    output: z.string(),
    changesNothing: true,
    run: () => 'y'.repeat(64_000_000),
  }),
  operation({
    id: 'toys.build',
    needs: { role: 'viewer', scope: 'read' },
    method: 'POST',
    path: '/toys/build',
    summary: 'Build a toy.',
    output: z.string(),
    run: () => 'y'.repeat(64_000_000),
  }),
  operation({
    id: 'toys.shown',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/toys/shown',
    summary: 'Get a toy, with a ticket.',
    query: z.strictObject({ ticket: z.string() }),
    output: z.string(),
    async guests(_deps, { query: { ticket } }) {
      const tenant = { organisationId: 'org_0', environment: 'test' } as const
      return { tenant, actor: { kind: 'guest', guestId: String(ticket) }, shareOwner: 'org_0' } as const
    },
    run: () => 'y'.repeat(4_000_000),
  }),
  operation({
    id: 'toys.list',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/toys/each',
    summary: 'List large toys.',
    query: PageQuery,
    output: z.string(),
    list: true,
    run(_ctx, { query: { limit, cursor } }) {
      const from = Number(openCursor(cursor) ?? 0)
      const places = Array.from({ length: 20 - from }, (_, place) => from + place).slice(0, limit + 1)
      return pageOfLarge(places, limit)
    },
  }),
]

/** A page of toys of 200,000 bytes, each of which begins with its place. */
function pageOfLarge(places: readonly number[], limit: number) {
  const page = pageOf(places, limit, (place) => String(place + 1))
  return { ...page, items: page.items.map((place) => `${place} ${'z'.repeat(199_990)}`) }
}

/** No operation of this test uses the database. */
const noDb = {} as unknown as Db

/** Starts a server of the toys. Keys are `org1 key1` and so on. */
export async function aToyServer(options: Partial<HttpOptions> = {}): Promise<{ port: number; base: string }> {
  const now = new Date()
  const deps = toyDeps(noDb)
  const own = { ...deps, clock: { ...deps.clock, now: () => now } }
  const server = createHttpServer({
    deps: own,
    operations: bindOperations(own, operations),
    pages: [
      { path: '/page', respond: () => ({ status: 200, headers: {}, body: 'here' }) },
      { path: '/page/large', respond: () => ({ status: 200, headers: {}, body: 'y'.repeat(64_000_000) }) },
      {
        path: '/sign-in',
        method: 'POST',
        bodyBytesMax: 32_768,
        respond: () => ({ status: 200, headers: {}, body: 'in' }),
      },
    ],
    async authenticate(authorization = '') {
      toys.looked.push(authorization)
      const [, org, key] = /^Bearer org(\d) key(\d)$/.exec(authorization) ?? []
      if (org === undefined) throw unauthorized('the key is unknown or revoked')
      return {
        organisationId: `org_${org}`,
        environment: 'test',
        apiKeyId: `key_${org}${key}`,
        shareOwner: `org_${org}`,
        scopes: null,
        isSuspended: false,
      }
    },
    keyLimit: { perSecond: 1_000, burst: 1_000 },
    addressLimit: { perSecond: 1_000, burst: 1_000 },
    trustProxy: false,
    ...options,
  })
  toys.servers.push(server)
  const { port } = await server.listen(0, '127.0.0.1')
  return { port, base: `http://127.0.0.1:${port}` }
}
