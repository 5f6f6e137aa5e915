import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { ManualLine, openManually } from '../../../../test/manual-line.ts'
import { readsCounted } from '../../../../test/rows-read.ts'
import { toyDeps } from '../../../../test/toy-deps.ts'
import { sql } from '../../../platform/db/db.ts'
import { isProblem } from '../../../platform/errors.ts'
import { insertEvents } from '../../../platform/events.ts'
import type { ApiKeyId } from '../../../platform/ids.ts'
import type { Listening } from './listener.ts'
import { Listeners, type ListenersDeps } from './listeners.ts'
import { beginning, listPages, type StreamPosition } from './store.ts'

/**
 * Listeners receive an event only after every earlier transaction of the cluster has ended, including those of other tests in
 * other databases.
 */
const patience = { timeout: 180_000 }

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const serviceSeal = {
  kid: 'did:web:purser.test#seal-1',
  publicKeys: async () => [],
  sign: async () => new Uint8Array(64),
  publicKeysTo: async () => [],
  signTo: async () => new Uint8Array(64),
}
let organisation = 0

function aStage(own: Partial<ListenersDeps> = {}) {
  const deps = toyDeps(database.db)
  const listeners = new Listeners({ ...deps, serviceSeal, endedReaders: async () => [], ...own })
  onTestFinished(() => listeners.stop())
  const tenant = { organisationId: `org_${++organisation}`, environment: 'test' } as const
  const owner = `acc_${organisation}`
  return {
    listeners,
    tenant,
    owner,
    open(reader: ApiKeyId = 'key_1', more: Pick<Listening, 'charges'> = {}) {
      const position = beginning
      return openManually(
        listeners.respond({ tenant, owner, reader, secret, position, types: undefined, follows: true, ...more }),
      )
    },
    /** Resolves when listeners may receive so many events. */
    async seen(count: number): Promise<void> {
      const bounds = { entriesMax: 1_000, bytesMax: 2 ** 30 }
      const visible = async () => {
        const [page] = await listPages(deps.db, [{ tenant, position: beginning, types: undefined }], bounds)
        return page?.entries.length
      }
      await expect.poll(visible, patience).toBe(count)
    },
    publish: (count: number, payload: object = { vaultId: 'vlt_1' }) =>
      deps.db.tx((tx) => insertEvents({ ...deps, tenant }, tx, 'vault.sealed', Array(count).fill(payload))),
  }
}

/** A connection whose reader reads nothing until the test says so. */
class UnreadLine extends ManualLine {
  most = 0
  #drained = Promise.withResolvers<void>()

  override write(bytes: Uint8Array): void {
    super.write(bytes)
    this.waiting += bytes.length
    this.most = Math.max(this.most, this.waiting)
  }

  override drained(): Promise<void> {
    return this.waiting === 0 ? Promise.resolve() : this.#drained.promise
  }

  read(): void {
    this.waiting = 0
    this.#drained.resolve()
    this.#drained = Promise.withResolvers()
  }
}

test('a reader that does not read is sent nothing more until it does, so that no signature ages, and misses nothing', async () => {
  const { listeners, open, publish } = aStage()
  const [slow, quick] = [open(), open()]
  slow.waiting = 65_536
  const ids = [...(await publish(250))].sort()
  listeners.wake()
  await expect.poll(() => quick.webhookIds, patience).toEqual(ids)
  expect(slow.webhookIds).toEqual([])
  slow.waiting = 0
  listeners.wake()
  await expect.poll(() => slow.webhookIds, patience).toEqual(ids)
})

test('a reader that reads nothing keeps a few large events in memory and not a page of them, and misses none when it reads', async () => {
  const { listeners, tenant, owner, publish } = aStage()
  const lines = Array.from({ length: 5 }, (_, number) => {
    const listening = { tenant, owner, reader: `key_${number}`, secret, position: beginning, types: undefined } as const
    const response = listeners.respond({ ...listening, follows: true })
    const line = new UnreadLine(response.closed)
    response.open(line)
    return line
  })
  const ids = [...(await publish(100, { summary: '\u0001'.repeat(2_000) }))].sort()
  await expect
    .poll(() => {
      listeners.wake()
      return lines.every(({ webhookIds }) => webhookIds.length > 0)
    }, patience)
    .toBe(true)
  listeners.wake()
  await expect
    .poll(() => {
      for (const line of lines) line.read()
      return lines.every(({ webhookIds }) => webhookIds.length === 100)
    }, patience)
    .toBe(true)
  expect(lines.map(({ webhookIds }) => webhookIds)).toEqual(lines.map(() => ids))
  expect(Math.max(...lines.map(({ most }) => most))).toBeLessThan(131_072)
})

test('past events cost their caller what signing them takes, and none are sent while the caller has used up its limits; new ones are free', async () => {
  const { listeners, open, publish, seen } = aStage()
  const past = [...(await publish(250))].sort()
  await seen(past.length)
  let [paid, seconds] = [0, 600]
  const line = open('key_1', {
    charges: {
      owe: (cost) => {
        paid += cost
        return seconds
      },
      takeOverdue: () => false,
    },
  })
  await expect.poll(() => line.webhookIds.length, patience).toBe(100)
  listeners.wake()
  await expect.poll(() => paid).toBeCloseTo((100 * 4_096) / 65_536 - 1)
  expect(line.webhookIds).toEqual(past.slice(0, 100))
  seconds = 0
  await expect.poll(() => line.webhookIds, patience).toEqual(past)
  const before = paid
  expect(before).toBeCloseTo((250 * 4_096) / 65_536 - 1)
  const later = await publish(50)
  listeners.wake()
  await expect.poll(() => line.webhookIds.length, patience).toBe(past.length + later.length)
  expect(paid).toBe(before)
})

test('past events that an older open transaction hides from the first read cost their caller the same', async () => {
  const { db } = toyDeps(database.db)
  let reads = 0
  const counting: typeof db = {
    ...db,
    many: async (...given: Parameters<typeof db.many>) => {
      const rows = await db.many(...given)
      reads += 1
      return rows
    },
  } as typeof db
  const { listeners, open, publish, seen } = aStage({ db: counting })
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const older = db.tx(async (tx) => {
    await tx.run(sql`select pg_current_xact_id()`)
    begun.resolve()
    await ended.promise
  })
  await begun.promise
  const past = [...(await publish(250))].sort()
  let paid = 0
  const owe = (cost: number) => {
    paid += cost
    return 0
  }
  const line = open('key_1', { charges: { owe, takeOverdue: () => false } })
  await expect.poll(() => reads).toBeGreaterThan(0)
  const later = await publish(10)
  expect([line.webhookIds, paid]).toEqual([[], 0])
  ended.resolve()
  await older
  await seen(260)
  listeners.wake()
  await expect.poll(() => line.webhookIds, patience).toEqual([...past, ...[...later].sort()])
  await expect.poll(() => paid).toBeCloseTo((250 * 4_096) / 65_536 - 1)
})

test('new events are sent after the last page of past ones, although the caller has used up its limits', async () => {
  const { listeners, open, publish, seen } = aStage()
  const past = await publish(50)
  await seen(past.length)
  const line = open('key_1', { charges: { owe: () => 600, takeOverdue: () => false } })
  await expect.poll(() => line.webhookIds.length, patience).toBe(past.length)
  await publish(5)
  listeners.wake()
  await expect.poll(() => line.webhookIds.length, patience).toBe(past.length + 5)
})

test('a page of large events ends with the one that reaches its bytes', async () => {
  const { tenant, publish } = aStage()
  await publish(20, { summary: 'x'.repeat(10_000) })
  const { db } = toyDeps(database.db)
  const page = async (position: StreamPosition, types: readonly string[] | undefined) => {
    const [one] = await listPages(db, [{ tenant, position, types }], { entriesMax: 15, bytesMax: 65_536 })
    return one ?? { entries: [], next: position, isFull: false }
  }
  await expect.poll(async () => (await page(beginning, undefined)).entries.length, patience).toBe(7)
  for (const types of [undefined, ['vault.sealed']]) {
    const first = await page(beginning, types)
    const second = await page(first.next, types)
    const third = await page(second.next, types)
    expect([first, second, third].map(({ entries, isFull }) => [entries.length, isFull])).toEqual([
      [7, true],
      [7, true],
      [6, false],
    ])
    expect(new Set([first, second, third].flatMap(({ entries }) => entries.map(({ eventId }) => eventId))).size).toBe(
      20,
    )
  }
})

test('slow readers of one owner keep at most its share of the memory, and those of another stay', async () => {
  const { listeners, tenant, owner } = aStage()
  const openFor = (of: string, count: number) =>
    Array.from({ length: count }, (_, number) => {
      const listening = { tenant, owner: of, reader: `key_${of}_${number}`, secret, types: undefined } as const
      return openManually(listeners.respond({ ...listening, position: beginning, follows: true }))
    })
  const [slow, other] = [openFor(owner, 500), openFor(`${owner}_other`, 50)]
  for (const line of [...slow, ...other]) line.waiting = 100_000
  await listeners.tick()
  await listeners.tick()
  const kept = slow.filter(({ isOpen }) => isOpen).length
  expect(kept * 100_000).toBeLessThanOrEqual(32 * 2 ** 20)
  expect(kept).toBeGreaterThan(100)
  expect(other.filter(({ isOpen }) => !isOpen)).toEqual([])
})

test('many streams of one owner with a long past delay neither the events of another nor the other work of the process', async () => {
  const { listeners, tenant, owner, open } = aStage()
  const other = { organisationId: `org_${++organisation}`, environment: 'test' } as const
  const lines = Array.from({ length: 30 }, () => open())
  const live = listeners.respond({
    ...{ tenant: other, owner: `${owner}_other`, reader: 'key_2', secret, position: beginning, types: undefined },
    follows: true,
  })
  const line = openManually(live)
  const written = () => lines.reduce((sum, one) => sum + one.written.length, 0)
  const deps = toyDeps(database.db)
  // In one transaction, so that all of them can be read from the same moment on.
  await deps.db.tx(async (tx) => {
    await insertEvents({ ...deps, tenant }, tx, 'vault.sealed', Array(150).fill({ vaultId: 'vlt_1' }))
    await insertEvents({ ...deps, tenant: other }, tx, 'vault.sealed', [{ vaultId: 'vlt_2' }])
  })
  let [before, mostInTurn, writtenBeforeOther] = [written(), 0, 0]
  const watched = setInterval(() => listeners.wake(), 50)
  onTestFinished(() => clearInterval(watched))
  await new Promise<void>((resolve) => {
    const look = (): void => {
      mostInTurn = Math.max(mostInTurn, written() - before)
      before = written()
      if (line.webhookIds.length === 0) writtenBeforeOther = before
      if (lines.every(({ webhookIds }) => webhookIds.length === 150)) resolve()
      else setImmediate(look)
    }
    look()
  })
  expect(line.webhookIds).toHaveLength(1)
  expect(mostInTurn).toBeLessThan(100)
  expect(writtenBeforeOther).toBeLessThan(1_500)
})

test('a listener of a rare type gets it from behind thousands of other events, of which one read looks at a thousand', async () => {
  const { tenant, publish } = aStage()
  const deps = toyDeps(database.db)
  await publish(2_500)
  const [rare] = await deps.db.tx((tx) =>
    insertEvents({ ...deps, tenant }, tx, 'vault.persisted', [{ vaultId: 'vlt_1' }]),
  )
  const pageAfter = async (position: StreamPosition, types?: readonly string[]) => {
    const [page] = await listPages(deps.db, [{ tenant, position, types }], { entriesMax: 2_600, bytesMax: 2 ** 20 })
    if (page === undefined) throw new Error('no page')
    return page
  }
  await expect.poll(async () => (await pageAfter(beginning)).entries.length, patience).toBe(2_501)
  const types = ['vault.persisted']
  const first = await pageAfter(beginning, types)
  const second = await pageAfter(first.next, types)
  const third = await pageAfter(second.next, types)
  expect([first, second, third].map(({ entries, isFull }) => [entries.map(({ eventId }) => eventId), isFull])).toEqual([
    [[], true],
    [[], true],
    [[rare], false],
  ])
})

test('a listener of all types reads no more because another listener of the same read is of some types', async () => {
  const [many, none] = [aStage(), aStage()]
  await many.publish(2_500)
  const { db, rows } = readsCounted(database.db, '^events')
  const following = [
    { tenant: many.tenant, position: beginning, types: undefined },
    { tenant: none.tenant, position: beginning, types: ['vault.persisted'] },
  ]
  const read = () =>
    db.tx((tx) => listPages(tx, following, { entriesMax: 100, bytesMax: 65_536 }), { readsInOrder: true })
  await expect.poll(async () => (await read())[0]?.entries.length, patience).toBe(100)
  const before = rows()
  const [all, some] = await read()
  expect([all?.entries.length, all?.isFull, some?.entries.length, some?.isFull]).toEqual([100, true, 0, false])
  expect(Number(rows() - before)).toBeLessThan(500)
})

test('a process serves at most a thousand streams, a key ten, a share owner half, and one that closes frees its slot', () => {
  const { listeners, open, owner } = aStage()
  const refusal = (reader: ApiKeyId, own = owner) => {
    try {
      listeners.refuseIfFull({ owner: own, environment: 'live', reader })
      return 'none'
    } catch (error) {
      return isProblem(error) ? error.code : error
    }
  }
  const [first] = Array.from({ length: 10 }, () => open('key_1'))
  expect([refusal('key_1'), refusal('key_2')]).toEqual(['rate-limit-exceeded', 'none'])
  first?.cut()
  expect(refusal('key_1')).toBe('none')
  for (let number = 9; number < 500; number++) open(`key_${number}`)
  expect([refusal('key_501'), refusal('key_502', 'acc_other')]).toEqual(['rate-limit-exceeded', 'none'])
  for (let number = 500; number < 1_000; number++) open(`key_${number}`)
  expect([refusal('key_1'), listeners.count]).toEqual(['service-unavailable', 1_000])
})

test('an event that cannot be signed is not skipped: the stream is closed, and a client that reconnects gets it', async () => {
  let isBroken = true
  const sign = async () => {
    if (isBroken) throw new Error('no key')
    return new Uint8Array(64)
  }
  const { listeners, open, publish } = aStage({ serviceSeal: { ...serviceSeal, signTo: sign } })
  const ids = [...(await publish(2))].sort()
  const line = open()
  await expect.poll(() => line.how, patience).toBe('cut')
  expect(line.webhookIds).toEqual([])
  isBroken = false
  const again = open()
  listeners.wake()
  await expect.poll(() => again.webhookIds, patience).toEqual(ids)
})
