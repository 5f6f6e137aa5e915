import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { ShiftedClock } from '../../../test/webhooks/clock.ts'
import { createChains } from '../../chain/index.ts'
import { sql } from '../../platform/db/db.ts'
import { createLog } from '../../platform/log.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { bundledList } from './bundled-list.ts'
import { isStale } from './dating.ts'
import { createListReader, ensureBundledList, readAddresses } from './lists.ts'
import { type RefreshOptions, refreshList, refreshWhenDue } from './refresh.ts'
import { ListRefused } from './sanctions-list.ts'
import { openScreening } from './screening.ts'

const dayMs = 86_400_000
let outbound: Outbound
let directory: string
let databases: TestDatabase[] = []
let servers: Server[] = []

beforeAll(() => {
  outbound = createOutbound()
  directory = mkdtempSync(path.join(tmpdir(), 'purser-lists-'))
})
afterEach(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers = []
  for (const database of databases) await database.drop()
  databases = []
})
afterAll(async () => {
  await outbound.close()
  rmSync(directory, { recursive: true })
})

interface ListResponse {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
  /** Cuts the connection after this many bytes of the body. */
  readonly cutAfter?: number
}

/** A deployment with the bundled list and its own database. */
async function aDeployment() {
  const database = await freshDatabase()
  databases.push(database)
  const clock = new ShiftedClock()
  const deps = { ...toyDeps(database.db), clock, outbound }
  await ensureBundledList(deps)
  const current = createListReader(database.db).read
  return {
    deps,
    clock,
    db: database.db,
    current,
    refresh: (place: { url: string } | { file: string }, options?: RefreshOptions) => refreshList(deps, place, options),
    async refusal(place: { url: string } | { file: string }, options?: RefreshOptions): Promise<string> {
      const before = await current()
      const error: unknown = await refreshList(deps, place, options).catch((thrown: unknown) => thrown)
      expect((await current()).row).toEqual(before.row)
      if (!(error instanceof ListRefused)) throw new Error(`not refused: ${String(error)}`)
      return error.code
    },
  }
}

async function aSource(answer: (url: string, requested: number) => ListResponse): Promise<string> {
  let requested = 0
  const server = createServer((request, response) => {
    requested += 1
    const { status = 200, headers = {}, body = '', cutAfter } = answer(request.url ?? '', requested)
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
    if (cutAfter === undefined) response.end(body)
    else response.write(body.slice(0, cutAfter), () => response.destroy())
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

function dayOf(clock: ShiftedClock, daysAgo = 0): string {
  return new Date(clock.now().getTime() - daysAgo * dayMs).toISOString().slice(0, 10)
}

function plain(addresses: readonly string[], day?: string): string {
  return `${day === undefined ? '' : `# list-date: ${day}\n`}${addresses.join('\n')}\n`
}

function officialOf(addresses: readonly string[], day: string): string {
  const [year, month, date] = day.split('-')
  const features = addresses.map(
    (address) =>
      `<Feature FeatureTypeID="345"><FeatureVersion><VersionDetail>${address}</VersionDetail></FeatureVersion></Feature>`,
  )
  return `<Sanctions><DateOfIssue><Year>${year}</Year><Month>${Number(month)}</Month><Day>${date}</Day></DateOfIssue>
    <ReferenceValueSets><FeatureTypeValues><FeatureType ID="345">Digital Currency Address - ETH</FeatureType></FeatureTypeValues>
    </ReferenceValueSets><DistinctParties>${features.join('')}</DistinctParties></Sanctions>`
}

const extra = '0x00000000000000000000000000000000000000aa'
const bundled: readonly string[] = bundledList.addresses
const withExtra = [...bundled, extra]

test('a fresh deployment has the bundled list with its date, and it is stale', async () => {
  const { current, clock } = await aDeployment()
  const { row, addresses } = await current()
  expect(row).toMatchObject({ version: 1n, listDate: '2024-09-27', addressCount: 156 })
  expect(addresses.has('0x098b716b8aaf21512996dc57eb0615e2383e2f96')).toBe(true)
  expect(isStale(row.asOf, clock.now())).toBe(true)
})

test.each([
  [false, 1],
  [true, 0],
])('a stale list is logged, except where all screenings are the sandbox’s (%s)', async (isSandbox, count) => {
  const { deps, clock } = await aDeployment()
  const lines: string[] = []
  const log = createLog({ level: 'warn', destination: { write: (line) => void lines.push(line) } })
  const chains = createChains({ outbound, clock, networks: [], rpcUrls: {}, rpcTimeoutMs: 1_000, log })
  const screening = await openScreening({ ...deps, log }, { chains, outbound, listUrl: undefined, isSandbox })
  await screening.refreshIfDue()
  await screening.stop()
  expect(lines.filter((line) => line.includes('the sanctions list is stale'))).toHaveLength(count)
})

test('the official list from its source is a new version, fresh as of the reading, and the previous one is kept', async () => {
  const { current, refresh, clock, db } = await aDeployment()
  const url = await aSource(() => ({ body: officialOf(withExtra, dayOf(clock, 9)) }))
  const before = clock.now().getTime()
  const { list, isChanged } = await refresh({ url })
  expect([list.version, list.listDate, list.addressCount, isChanged]).toEqual([2n, dayOf(clock, 9), 157, true])
  const { row, addresses } = await current()
  expect(row.asOf.getTime()).toBeGreaterThanOrEqual(before)
  expect(isStale(row.asOf, clock.now())).toBe(false)
  expect(addresses.has(extra)).toBe(true)
  expect((await readAddresses(db, 1n)).has(extra)).toBe(false)
})

test('unchanged addresses a day later keep the version and extend its validity', async () => {
  const { current, refresh, clock } = await aDeployment()
  const url = await aSource(() => ({ body: officialOf(withExtra, dayOf(clock)) }))
  await refresh({ url })
  const first = (await current()).row
  clock.forward(dayMs)
  expect((await refresh({ url })).isChanged).toBe(false)
  const second = (await current()).row
  expect(second.version).toBe(first.version)
  expect(second.asOf.getTime() - first.asOf.getTime()).toBeGreaterThanOrEqual(dayMs)
})

test('every process sees a new list with its next read', async () => {
  const { db, refresh, clock } = await aDeployment()
  const [one, other] = [createListReader(db).read, createListReader(db).read]
  expect((await Promise.all([one(), other()])).map(({ row }) => row.version)).toEqual([1n, 1n])
  const url = await aSource(() => ({ body: officialOf(withExtra, dayOf(clock)) }))
  await refresh({ url })
  expect((await Promise.all([one(), other()])).map(({ addresses }) => addresses.has(extra))).toEqual([true, true])
})

test('a source unchanged for over a month is stale, however often it is read', async () => {
  const { current, refresh, clock } = await aDeployment()
  const url = await aSource(() => ({ body: officialOf(withExtra, dayOf(clock, 31)) }))
  await refresh({ url })
  const { row } = await current()
  expect(row.asOf.toISOString().slice(0, 10)).toBe(dayOf(clock, 31))
  expect(isStale(row.asOf, clock.now())).toBe(true)
})

test('a plain list is as fresh as its own or its server’s date; one without a date is refused', async () => {
  const { current, refresh, refusal, clock } = await aDeployment()
  const undated = await aSource(() => ({ body: plain(withExtra) }))
  expect(await refusal({ url: undated })).toBe('undated')
  const old = await aSource(() => ({
    headers: { 'last-modified': new Date(clock.now().getTime() - 10 * dayMs).toUTCString() },
    body: plain(withExtra),
  }))
  await refresh({ url: old })
  expect(isStale((await current()).row.asOf, clock.now())).toBe(true)
  await refresh({ url: await aSource(() => ({ body: plain(withExtra, dayOf(clock, 1)) })) })
  expect(isStale((await current()).row.asOf, clock.now())).toBe(false)
})

test('a file is as fresh as its own date or the operator’s', async () => {
  const { current, refresh, refusal, clock } = await aDeployment()
  const file = path.join(directory, 'sdn_advanced.xml')
  writeFileSync(file, officialOf(withExtra, dayOf(clock, 9)))
  await refresh({ file })
  expect(isStale((await current()).row.asOf, clock.now())).toBe(true)
  await refresh({ file }, { asOf: dayOf(clock, 1) })
  expect(isStale((await current()).row.asOf, clock.now())).toBe(false)
  expect(await refusal({ file: path.join(directory, 'missing.xml') })).toBe('unreachable')
})

test.each<readonly [string, string, (today: string) => ListResponse]>([
  ['cut short', 'unreachable', (today) => ({ body: officialOf(withExtra, today), cutAfter: 5_000 })],
  ['an error page', 'empty', () => ({ body: 'we will be back soon' })],
  ['an HTML page', 'malformed', () => ({ body: '<html><body>hello</body></html>' })],
  ['emptied', 'empty', (today) => ({ body: officialOf([], today) })],
  ['shrunk below four fifths', 'shrunk', (today) => ({ body: officialOf(bundled.slice(0, 124), today) })],
  ['of the day after tomorrow', 'future', () => ({ body: officialOf(withExtra, '2199-01-01') })],
  ['with an invalid date', 'undated', () => ({ body: officialOf(withExtra, '2026-02-31') })],
  ['older than the current one', 'older', () => ({ body: plain(withExtra, '2024-09-26') })],
  ['gone', 'unreachable', () => ({ status: 404 })],
  ['an error', 'unreachable', () => ({ status: 500, body: 'no' })],
  ['a redirect to nowhere', 'unreachable', () => ({ status: 302 })],
  ['a redirect to a file', 'unreachable', () => ({ status: 302, headers: { location: 'file:///etc/passwd' } })],
  ['a redirect without end', 'unreachable', () => ({ status: 302, headers: { location: '/again' } })],
])('a source that is %s is refused, and the current list stays', async (_what, code, response) => {
  const { refusal, clock } = await aDeployment()
  const url = await aSource(() => response(dayOf(clock)))
  expect(await refusal({ url })).toBe(code)
})

test('a list with four fifths of the addresses is accepted, and a shorter one only with the operator’s exact count', async () => {
  const { refresh, refusal, clock } = await aDeployment()
  const url = await aSource(() => ({ body: officialOf(bundled.slice(0, 125), dayOf(clock)) }))
  expect((await refresh({ url })).list.addressCount).toBe(125)
  const less = await aSource(() => ({ body: officialOf(bundled.slice(0, 50), dayOf(clock)) }))
  expect(await refusal({ url: less }, { acceptCount: 49 })).toBe('shrunk')
  expect((await refresh({ url: less }, { acceptCount: 50 })).list.addressCount).toBe(50)
})

test('a redirect of the source is followed', async () => {
  const { refresh, clock } = await aDeployment()
  const url = await aSource((path) =>
    path === '/list' ? { body: officialOf(withExtra, dayOf(clock)) } : { status: 302, headers: { location: '/list' } },
  )
  expect((await refresh({ url })).list.version).toBe(2n)
})

test('concurrent lists are stored one after the other, and the current one is complete', async () => {
  const { refresh, current, clock } = await aDeployment()
  const lists = [extra, extra.replace('aa', 'bb'), extra.replace('aa', 'cc')].map((one) => [...bundled, one])
  const urls = await Promise.all(lists.map((list) => aSource(() => ({ body: officialOf(list, dayOf(clock)) }))))
  const settled = await Promise.allSettled(urls.map((url) => refresh({ url })))
  const versions = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value.list.version] : []))
  expect(versions.length).toBeGreaterThanOrEqual(1)
  expect(new Set(versions).size).toBe(versions.length)
  const held = [...(await current()).addresses].sort()
  expect(lists.map((list) => [...list].sort())).toContainEqual(held)
})

test('one of many processes queries the source once a day, and once an hour while that fails', async () => {
  const { deps, clock, current } = await aDeployment()
  let count = 0
  let isUp = true
  const url = await aSource(() => {
    count += 1
    return isUp ? { body: officialOf(withExtra, dayOf(clock)) } : { status: 503 }
  })
  const tick = () => Promise.all(Array.from({ length: 5 }, () => refreshWhenDue(deps, url)))
  await tick()
  await tick()
  expect(count).toBe(1)
  clock.forward(23 * 3_600_000)
  await tick()
  expect(count).toBe(1)
  isUp = false
  clock.forward(3_600_001)
  await tick()
  expect(count).toBe(2)
  clock.forward(3_600_001)
  await tick()
  expect(count).toBe(3)
  const { failures } = await deps.db.one(
    z.object({ failures: z.number() }),
    sql`select failures from sanctions_refresh`,
  )
  expect(failures).toBe(2)
  expect((await current()).row.version).toBe(2n)
  clock.forward(7 * dayMs)
  expect(isStale((await current()).row.asOf, clock.now())).toBe(true)
  isUp = true
  await tick()
  expect(isStale((await current()).row.asOf, clock.now())).toBe(false)
})
