import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anEmptyDatabase, openPool, type TestDatabase } from '../../server/test/database.ts'
import { fileLedger, postgresLedger, postgresLedgerTables } from '../src/ledgers/index.ts'
import { type Ledger, memoryLedger, type ProposedPayment, type ReservationRequest } from '../src/pay/index.ts'
import { errorOf, payTo, usdc } from './pay-stage.ts'

let database: TestDatabase
let pool: pg.Pool
const directory = mkdtempSync(path.join(tmpdir(), 'ledgers-'))
beforeAll(async () => {
  database = await anEmptyDatabase()
  pool = openPool(database.url, 8)
  await Promise.all([pool.query(postgresLedgerTables), pool.query(postgresLedgerTables)])
})
afterAll(async () => {
  await pool?.end()
  await database?.drop()
  rmSync(directory, { recursive: true })
})

let count = 0
const nameOf = (kind: string) => `${kind}-${++count}`
const newFile = () => path.join(directory, `${nameOf('budget')}.jsonl`)

/** Ledgers of one new budget, each as another process would have it. */
const kinds: readonly (readonly [kind: string, budget: () => readonly [Ledger, Ledger]])[] = [
  [
    'memory',
    () => {
      const ledger = memoryLedger()
      return [ledger, ledger]
    },
  ],
  [
    'file',
    () => {
      const file = newFile()
      return [fileLedger(file), fileLedger(file)]
    },
  ],
  [
    'postgres',
    () => {
      const budget = nameOf('agent')
      return [postgresLedger({ database: pool, budget }), postgresLedger({ database: pool, budget })]
    },
  ],
]

function paymentOf(changes: Partial<ProposedPayment> = {}): ProposedPayment {
  return {
    url: 'https://api.seller.test/report',
    host: 'api.seller.test',
    protocol: 'x402',
    method: 'x402/v2',
    amountUsd: '0.1',
    amount: '100000',
    token: 'USDC',
    asset: usdc.address,
    network: 'base-sepolia',
    payTo,
    ...changes,
  }
}

function requestOf(
  id: string,
  { payment, ...changes }: Partial<Omit<ReservationRequest, 'payment'>> & { payment?: Partial<ProposedPayment> } = {},
): ReservationRequest {
  return { id, purchase: id, day: '2026-11-21', payment: paymentOf(payment), limits: { perDay: '1' }, ...changes }
}

const credential = { header: 'PAYMENT-SIGNATURE', value: 'secret', validBeforeSeconds: 1_795_000_000 }

describe.each(kinds)('the %s ledger', (_kind, budgetOf) => {
  test('a reservation counts at once in every process, by the host and by the day, and exactly', async () => {
    const [one, other] = budgetOf()
    const limits = { perHostPerDay: '0.3', perDay: '0.400000000000000001' }
    const cheap = { amountUsd: '0.000000000000000001' }
    expect(await one.reserve(requestOf('a', { limits, payment: { amountUsd: '0.3' } }))).toEqual({ ok: true })
    expect(await other.reserve(requestOf('b', { limits, payment: cheap }))).toEqual({
      ok: false,
      limit: 'perHostPerDay',
      spentUsd: '0.3',
    })
    const elsewhere = { host: 'b.test', amountUsd: '0.1' }
    expect(await other.reserve(requestOf('c', { limits, payment: elsewhere }))).toEqual({ ok: true })
    expect(await one.reserve(requestOf('d', { limits, payment: { host: 'c.test', ...cheap } }))).toEqual({ ok: true })
    expect(await one.reserve(requestOf('e', { limits, payment: { host: 'c.test', ...cheap } }))).toEqual({
      ok: false,
      limit: 'perDay',
      spentUsd: '0.400000000000000001',
    })
    expect(await one.reserve(requestOf('f', { limits, day: '2026-11-22' }))).toEqual({ ok: true })
  })

  test('a first payment of a day above the limit is refused, and one without limits is counted', async () => {
    const [ledger] = budgetOf()
    expect(await ledger.reserve(requestOf('a', { payment: { amountUsd: '1.1' } }))).toEqual({
      ok: false,
      limit: 'perDay',
      spentUsd: '0',
    })
    expect(await ledger.reserve(requestOf('b', { limits: {}, payment: { amountUsd: '7' } }))).toEqual({ ok: true })
    expect(await ledger.reserve(requestOf('c'))).toMatchObject({ ok: false, spentUsd: '7' })
  })

  test('of many reservations at once in two processes exactly those that fit are counted', async () => {
    const [one, other] = budgetOf()
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? one : other).reserve(requestOf(`many-${index}`))),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(10)
    expect(await one.reserve(requestOf('late'))).toMatchObject({ ok: false, spentUsd: '1' })
  })

  test('a purchase is reserved once, by one of many at once, and the others learn by whom', async () => {
    const [one, other] = budgetOf()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? one : other).reserve(requestOf(`id-${index}`, { purchase: 'report' })),
      ),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1)
    const winner = `id-${answers.findIndex(({ ok }) => ok)}`
    const refused = answers.filter(({ ok }) => !ok)
    for (const response of refused) {
      expect(response).toMatchObject({ earlier: { id: winner, purchase: 'report', state: 'reserved' } })
    }
    expect(await other.reserve(requestOf('other', { payment: { amountUsd: '0.9' } }))).toEqual({ ok: true })
    const full = await other.reserve(requestOf('late', { purchase: 'report', payment: { amountUsd: '5' } }))
    expect(full).toMatchObject({ ok: false, earlier: { id: winner } })
  })

  test('a payment is reserved, signed and spent, and each process finds its credential by the purchase', async () => {
    const [one, other] = budgetOf()
    await one.reserve(requestOf('a', { purchase: 'report' }))
    const reserved = { id: 'a', purchase: 'report', day: '2026-11-21', payment: paymentOf(), state: 'reserved' }
    expect(await other.find('report')).toEqual(reserved)
    expect(await other.unfinished()).toEqual([reserved])

    await one.signed('a', credential)
    expect(await other.find('report')).toEqual({ ...reserved, state: 'signed', credential })
    expect(await other.unfinished()).toEqual([{ ...reserved, state: 'signed', credential }])

    await one.spent('a')
    expect(await other.find('report')).toEqual({ ...reserved, state: 'spent', credential })
    expect(await other.unfinished()).toEqual([])
    expect(await other.find('another')).toBeUndefined()
  })

  test('a released payment is not counted, can be made anew, and can no longer be signed', async () => {
    const [one, other] = budgetOf()
    await one.reserve(requestOf('a', { purchase: 'report', payment: { amountUsd: '1' } }))
    await other.release('a')
    expect(await errorOf(one.signed('a', credential))).toMatchObject({
      message: 'The reservation a was released, so its payment is not sent.',
    })
    await one.release('a')
    expect(await one.find('report')).toBeUndefined()
    expect(await one.reserve(requestOf('b', { purchase: 'report', payment: { amountUsd: '1' } }))).toEqual({ ok: true })
    expect(await one.reserve(requestOf('c'))).toMatchObject({ ok: false, spentUsd: '1' })
    await one.signed('b', credential)
    await other.release('b')
    expect(await one.reserve(requestOf('c', { payment: { amountUsd: '1' } }))).toEqual({ ok: true })
  })

  test('what was delivered is not released, a second signature is refused, and an unknown id changes nothing', async () => {
    const [ledger] = budgetOf()
    await ledger.reserve(requestOf('a', { purchase: 'report' }))
    await ledger.spent('a')
    expect(await ledger.find('report')).toMatchObject({ state: 'reserved' })
    await ledger.signed('a', credential)
    expect(await errorOf(ledger.signed('a', { ...credential, value: 'another' }))).toBeInstanceOf(Error)
    await ledger.spent('a')
    await ledger.release('a')
    expect(await ledger.find('report')).toMatchObject({ state: 'spent', credential })
    await ledger.spent('nobody')
    await ledger.release('nobody')
    expect(await errorOf(ledger.signed('nobody', credential))).toBeInstanceOf(Error)
  })

  test('releases and reservations of one day at once neither wait for each other nor count wrongly', async () => {
    const [one, other] = budgetOf()
    for (let index = 0; index < 10; index++) await one.reserve(requestOf(`r-${index}`, { purchase: `p-${index}` }))
    const indices = Array.from({ length: 10 }, (_, index) => index)
    await Promise.all(
      indices.flatMap((index) => [
        one.release(`r-${index}`),
        other.release(`r-${index}`),
        other.reserve(requestOf(`s-${index}`, { purchase: `p-${index}` })),
      ]),
    )
    const counted = (await one.unfinished()).length
    const free = 10 - counted
    const more = await Promise.all(Array.from({ length: 12 }, (_, index) => one.reserve(requestOf(`t-${index}`))))
    expect(more.filter(({ ok }) => ok)).toHaveLength(free)
  })
})

describe('a file', () => {
  test('is readable by its owner alone, and a new process continues from it', async () => {
    const file = newFile()
    await fileLedger(file).reserve(requestOf('a', { payment: { amountUsd: '0.95' } }))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await fileLedger(file).reserve(requestOf('b'))).toMatchObject({ ok: false, spentUsd: '0.95' })
    expect(await fileLedger(file).unfinished()).toMatchObject([{ id: 'a' }])
  })

  test('whose last line was cut short anywhere is read without that line, and goes on', async () => {
    const file = newFile()
    const ledger = fileLedger(file)
    await ledger.reserve(requestOf('a', { payment: { amountUsd: '0.4' } }))
    const before = statSync(file).size
    await ledger.reserve(requestOf('b', { payment: { amountUsd: '0.4' } }))
    const whole = readFileSync(file)
    for (let size = before; size < whole.length - 1; size += 41) {
      writeFileSync(file, whole.subarray(0, size))
      const next = fileLedger(file)
      expect(await next.reserve(requestOf('c', { payment: { amountUsd: '0.6' } }))).toEqual({ ok: true })
      expect(await fileLedger(file).unfinished()).toMatchObject([{ id: 'a' }, { id: 'c' }])
    }
  })

  test('of several megabytes, with texts that end anywhere in a block, is read whole', async () => {
    const file = newFile()
    const ledger = fileLedger(file)
    const url = `https://api.seller.test/${'ü'.repeat(30_000)}`
    for (let index = 0; index < 40; index++) {
      await ledger.reserve(requestOf(`a-${index}`, { limits: {}, payment: { url, amountUsd: '0.001' } }))
    }
    expect(statSync(file).size).toBeGreaterThan(2 * 1024 * 1024)
    const read = await fileLedger(file).unfinished()
    expect(read).toHaveLength(40)
    expect(read.every(({ payment }) => payment.url === url)).toBe(true)
  })

  test('that was deleted, replaced or cut short while it was in use refuses every payment', async () => {
    for (const spoil of [
      (file: string) => rmSync(file),
      (file: string) => truncateSync(file, 10),
      (file: string) => {
        rmSync(file)
        writeFileSync(file, '')
      },
    ]) {
      const file = newFile()
      const ledger = fileLedger(file)
      await ledger.reserve(requestOf('a'))
      spoil(file)
      expect(await errorOf(ledger.reserve(requestOf('b')))).toMatchObject({
        message: `${file} was deleted or cut short while it was in use.`,
      })
    }
  })

  test('of a later version of the format refuses every payment, however often one tries', async () => {
    const file = newFile()
    writeFileSync(file, '{"version":2}\n')
    const ledger = fileLedger(file)
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(await errorOf(ledger.reserve(requestOf('a')))).toMatchObject({
        message: `${file} has a line that this version of the SDK cannot read.`,
      })
    }
  })

  test('that cannot be opened refuses the payment, and the next one works when it can', async () => {
    const file = path.join(directory, 'missing', 'budget.jsonl')
    const ledger = fileLedger(file)
    expect(await errorOf(ledger.reserve(requestOf('a')))).toMatchObject({ code: 'ENOENT' })
    mkdirSync(path.dirname(file))
    expect(await ledger.reserve(requestOf('a'))).toEqual({ ok: true })
  })
})

describe('a database', () => {
  test('that fails refuses the payment with its own error', async () => {
    const broken = postgresLedger({ database: { query: () => Promise.reject(new Error('down')) }, budget: 'a' })
    expect(await errorOf(broken.reserve(requestOf('a')))).toMatchObject({ message: 'down' })
  })

  test('keeps budgets with different names apart', async () => {
    const [one, other] = [nameOf('b'), nameOf('b')].map((budget) => postgresLedger({ database: pool, budget }))
    await one?.reserve(requestOf(nameOf('x'), { purchase: 'report', payment: { amountUsd: '1' } }))
    expect(await other?.find('report')).toBeUndefined()
    const response = await other?.reserve(requestOf(nameOf('x'), { purchase: 'report', payment: { amountUsd: '1' } }))
    expect(response).toEqual({ ok: true })
  })
})

test('options that cannot work are refused where they are given', () => {
  expect(() => fileLedger('')).toThrow('file is "". Give the path of a file, such as "./agent-budget.jsonl".')
  expect(() => postgresLedger({ database: pool, budget: '' })).toThrow('budget is "". Give a name')
  expect(() => Reflect.apply(postgresLedger, undefined, [{ database: {}, budget: 'a' }])).toThrow(
    'database.query is missing. Give a pool of pg.',
  )
})
