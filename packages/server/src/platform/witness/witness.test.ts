import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { openMarks } from '../../files/index.ts'
import { systemClock } from '../clock.ts'
import { sql } from '../db/db.ts'
import { newId } from '../ids.ts'
import { createLog } from '../log.ts'
import { systemRandom } from '../random.ts'
import { takeIntoService } from './restored.ts'
import { findState } from './store.ts'
import { createWitness, type Marks, nameDeployment } from './witness.ts'

let database: TestDatabase
let directory: string
let marks: Marks
const log = createLog({ level: 'silent' })

beforeAll(async () => {
  database = await freshDatabase()
})
beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'purser-witness-'))
  marks = await openMarks({ directory }, { random: systemRandom })
  await database.db.run(sql`delete from witness_state`)
  await nameDeployment(database.db, systemRandom)
  return () => rmSync(directory, { recursive: true, force: true })
})
afterAll(() => database?.drop())

/** A process of the deployment that has just connected. */
async function aProcess(own: Marks = marks, marksMsMax = 5_000) {
  const witness = createWitness({ marks: own, marksMsMax, clock: systemClock, log })
  witness.open(database.db)
  await witness.compare(database.db)
  return witness
}

/** Replaces the database with an earlier copy. */
async function goBackTo(counter: bigint): Promise<void> {
  await database.db.run(sql`update witness_state set counter = ${counter}`)
}

function restored(isForced = false, own = marks) {
  const acting = { ...database, clock: systemClock, random: systemRandom, actor: { kind: 'operator' } as const }
  return takeIntoService({
    ...{ ...acting, marks: own, isForced, sequenceGap: 10, requestId: newId('req', acting) },
    move: async () => ({}),
  })
}

const refused = /service-unavailable/

test('a database that was never served is current, and so is one with all its marks', async () => {
  const witness = await aProcess()
  expect(await witness.status()).toBe('current')
  await witness.cover()
  expect(await (await aProcess()).status()).toBe('current')
})

test('a database that is one mark behind is refused by every process, until it is put into service', async () => {
  const witness = await aProcess()
  await witness.cover()
  await witness.cover()
  await goBackTo(1n)
  const other = await aProcess()
  expect(await other.status()).toBe('behind')
  expect(other.requireCurrent).toThrow(refused)
  await expect(other.cover()).rejects.toThrow(refused)
  expect(await restored()).toMatchObject({ outcome: 'restored', generation: 1 })
  await other.compare(database.db)
  expect(other.isCurrent()).toBe(true)
  await other.cover()
  expect(await restored()).toEqual({ outcome: 'current' })
})

test.each([
  [1, 0n],
  [5, 0n],
  [5, 3n],
  [5, 4n],
])('a process whose database goes back, after %i marks to %i, covers nothing more', async (covered, to) => {
  const witness = await aProcess()
  for (let count = 0; count < covered; count++) await witness.cover()
  await goBackTo(to)
  await expect(witness.cover()).rejects.toThrow(refused)
  expect(witness.isCurrent()).toBe(false)
})

test('the process of an old primary covers nothing once another copy was put into service', async () => {
  const old = await aProcess()
  await old.cover()
  const before = await findState(database.db)
  expect(await restored(true)).toMatchObject({ outcome: 'restored', generation: 1 })
  await database.db.run(sql`update witness_state set generation = 0, counter = ${before?.counter ?? 0n}`)
  await expect(old.cover()).rejects.toThrow(refused)
})

test('a thousand concurrent calls of two processes make far fewer marks, none twice, and leave one or two', async () => {
  const processes = [await aProcess(), await aProcess()]
  await processes[0]?.cover()
  const made: string[] = []
  const counting = {
    ...marks,
    create(...of: [string, string]) {
      made.push(of[1])
      return marks.create(...of)
    },
  }
  const counted = await Promise.all(processes.map(() => aProcess(counting)))
  await Promise.all(Array.from({ length: 1_000 }, (_, index) => counted[index % 2]?.cover()))
  expect(new Set(made).size).toBe(made.length)
  expect(made.length).toBeLessThan(20)
  const [deployment = ''] = readdirSync(path.join(directory, 'witness'))
  expect(readdirSync(path.join(directory, 'witness', deployment)).length).toBeLessThanOrEqual(2)
  expect(await processes[0]?.status()).toBe('current')
})

test('repetitions make one mark a second, however many there are', async () => {
  await (await aProcess()).cover()
  let made = 0
  const witness = await aProcess({
    ...marks,
    create(...of) {
      made += 1
      return marks.create(...of)
    },
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'], shouldClearNativeTimers: true })
  onTestFinished(() => void vi.useRealTimers())
  const repetitions: Promise<void>[] = []
  for (let count = 0; count < 50; count++) {
    repetitions.push(witness.coverRepetition())
    await vi.advanceTimersByTimeAsync(0)
    // Each has time to make a mark before the next one.
    await findState(database.db)
    if (count === 0) await repetitions[0]
  }
  expect(made).toBe(1)
  await vi.advanceTimersByTimeAsync(1_000)
  await Promise.all(repetitions)
  expect(made).toBe(2)
})

test('everything committed before a call is in every copy that is not behind the mark of the call', async () => {
  const witness = await aProcess()
  await witness.cover()
  await database.db.run(sql`create table covered (id integer)`)
  const states: bigint[] = []
  const watching = {
    ...marks,
    async create(...of: [string, string]) {
      // A copy with this mark's counter must have the row too.
      const { count, counter } = await seen()
      expect(count).toBe(states.length + 1)
      states.push(counter)
      return marks.create(...of)
    },
  }
  const own = await aProcess(watching)
  for (let row = 0; row < 5; row++) {
    await database.db.run(sql`insert into covered values (${row})`)
    await own.cover()
  }
  expect(states).toHaveLength(5)
  expect(await witness.status()).toBe('current')

  async function seen() {
    const row = z.object({ count: z.bigint().transform(Number), counter: z.bigint() })
    return database.db.one(row, sql`select (select count(*) from covered) as count, counter from witness_state`)
  }
})

test('missing marks stop a database that had some; unreadable marks stop it until they can be read', async () => {
  const witness = await aProcess()
  await witness.cover()
  let isBroken = true
  const broken = { ...marks, list: (of: string) => (isBroken ? Promise.reject(new Error('no disk')) : marks.list(of)) }
  const other = await aProcess(broken)
  expect(await other.status()).toBe('unknown')
  await expect(other.cover()).rejects.toThrow(refused)
  isBroken = false
  await other.compare(database.db)
  expect(await other.status()).toBe('current')
  rmSync(path.join(directory, 'witness'), { recursive: true })
  expect(await (await aProcess()).status()).toBe('behind')
})

test('a mark that cannot be made covers nothing, and the next one does', async () => {
  let isBroken = true
  const failing = {
    ...marks,
    create: (...of: [string, string]) => (isBroken ? Promise.reject(new Error('full')) : marks.create(...of)),
  }
  const witness = await aProcess(failing)
  await expect(witness.cover()).rejects.toThrow(refused)
  isBroken = false
  await witness.cover()
  expect(await (await aProcess()).status()).toBe('current')
})

test.each(['create', 'list', 'remove'] as const)(
  'marks that do not respond to %s keep no later call waiting, and no new connection',
  async (silent) => {
    let isSilent = false
    const silence = () => new Promise<never>(() => undefined)
    const hanging: Marks = {
      ...marks,
      [silent]: (...of: [never, never]) => (isSilent ? silence() : marks[silent](...of)),
    }
    const witness = await aProcess(hanging, 50)
    await witness.cover()
    isSilent = true
    const covered = witness.cover()
    if (silent === 'remove') await covered
    else await expect(covered).rejects.toThrow(refused)
    await witness.compare(database.db)
    expect(await witness.status()).toBe(silent === 'list' ? 'unknown' : 'current')
    isSilent = false
    await witness.compare(database.db)
    await witness.cover()
    expect(await (await aProcess()).status()).toBe('current')
  },
)

test.each([0, 1, 2])(
  'a process that is killed before its mark, after %i marks, leaves the database current',
  async (made) => {
    const witness = await aProcess()
    for (let count = 0; count < made; count++) await witness.cover()
    const dying = await aProcess({
      ...marks,
      async create(deployment, name) {
        const { counter } = await findStateOrFail()
        if (counter > BigInt(made)) throw new Error('killed')
        return marks.create(deployment, name)
      },
    })
    await expect(dying.cover()).rejects.toThrow(refused)
    expect((await findStateOrFail()).counter).toBe(BigInt(made) + 1n)
    const next = await aProcess()
    expect(await next.status()).toBe('current')
    await next.cover()
    expect(await (await aProcess()).status()).toBe('current')
  },
)

async function findStateOrFail() {
  const state = await findState(database.db)
  if (state === undefined) throw new Error('the deployment has no name')
  return state
}

test('a generation without its mark is not begun, even if all marks were lost', async () => {
  await (await aProcess()).cover()
  rmSync(path.join(directory, 'witness'), { recursive: true })
  const failing = { ...marks, create: () => Promise.reject(new Error('full')) }
  await expect(restored(false, failing)).rejects.toThrow('full')
  expect((await findStateOrFail()).generation).toBe(0)
  expect(await restored()).toMatchObject({ outcome: 'restored', generation: 1 })
  expect(await (await aProcess()).status()).toBe('current')
})

test('putting a database into service moves every sequence', async () => {
  const next = () => database.db.one(z.object({ next: z.bigint() }), sql`select nextval('screening_tickets') as next`)
  const { next: before } = await next()
  await (await aProcess()).cover()
  await goBackTo(0n)
  await restored()
  expect((await next()).next).toBeGreaterThan(before + 10n)
})
