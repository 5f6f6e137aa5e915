import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { build } from 'esbuild'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anEmptyDatabase, openPool, type TestDatabase } from '../../server/test/database.ts'
import { fileLedger, postgresLedger, postgresLedgerTables } from '../src/ledgers/index.ts'
import type { Ledger } from '../src/pay/index.ts'
import type { PayJob, PayStep } from './pay-child.ts'
import { asks, offer, serve } from './pay-stage.ts'

let database: TestDatabase
let pool: pg.Pool
const directory = mkdtempSync(path.join(tmpdir(), 'ledgers-crash-'))
const program = path.join(directory, 'pay-child.mjs')
beforeAll(async () => {
  // One file starts in a tenth of the time that its many modules take.
  await build({
    entryPoints: [path.join(import.meta.dirname, 'pay-child.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: { js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)" },
  })
  database = await anEmptyDatabase()
  pool = openPool(database.url, 2)
  await pool.query(postgresLedgerTables)
})
afterAll(async () => {
  await pool?.end()
  await database?.drop()
  rmSync(directory, { recursive: true })
})

let count = 0

/** A new budget: how a child process opens it, and how this one does. */
const kinds: readonly (readonly [kind: string, budget: () => readonly [PayJob['ledger'], Ledger]])[] = [
  [
    'file',
    () => {
      const file = path.join(directory, `budget-${++count}.jsonl`)
      return [{ file }, fileLedger(file)]
    },
  ],
  [
    'postgres',
    () => {
      const budget = `agent-${++count}`
      return [{ databaseUrl: database.url, budget }, postgresLedger({ database: pool, budget })]
    },
  ],
]

/** A seller of goods for a cent, and the credentials that it got. */
async function shop() {
  const credentials = new Set<string>()
  const url = await serve((req, res) => {
    const credential = req.headers['payment-signature']
    if (typeof credential === 'string') credentials.add(credential)
    if (credential === undefined) res.writeHead(402, { ...asks(offer('10000')) }).end('{}')
    else res.end('goods')
  })
  return { url, credentials }
}

/** Runs a child process. Returns the outcomes by purchase, or `undefined` if it was killed. */
async function run(job: PayJob): Promise<Readonly<Record<string, string>> | undefined> {
  const child = spawn(process.execPath, [program, JSON.stringify(job)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [code, signal] = await once(child, 'close')
  if (signal === 'SIGKILL') return undefined
  expect(code).toBe(0)
  return JSON.parse(Buffer.concat(chunks).toString())
}

function newSignatures(): { readonly file: string; readonly lines: () => readonly string[] } {
  const file = path.join(directory, `signatures-${++count}`)
  writeFileSync(file, '')
  return { file, lines: () => readFileSync(file, 'utf8').split('\n').slice(0, -1) }
}

const steps: readonly PayStep[] = ['reserve', 'sign', 'signed', 'send', 'spent']
const unsigned = ['after reserve', 'before sign', 'after sign', 'before signed']

describe.each(kinds)('with the %s ledger', (_kind, budgetOf) => {
  test('a process that is killed beside any step of a payment neither signs again for it nor forgets it', async () => {
    const [ledger, look] = budgetOf()
    const { url, credentials } = await shop()
    const signatures = newSignatures()
    const cuts = steps.flatMap((step) => (['before', 'after'] as const).map((when) => ({ when, step })))
    const perDay = `0.${String(cuts.length).padStart(2, '0')}`
    const base = { ledger, url, perDay, signatures: signatures.file }
    const purchases = cuts.map(({ when, step }) => `${when} ${step}`)

    for (const [index, cut] of cuts.entries()) {
      const purchase = purchases[index] ?? ''
      expect(await run({ ...base, purchases: [purchase], cut: { ...cut, purchase } })).toBeUndefined()
    }
    const afterCrashes = await run({ ...base, purchases })
    for (const purchase of purchases) {
      expect([purchase, afterCrashes?.[purchase]]).toEqual([
        purchase,
        unsigned.includes(purchase) ? 'purchase-unfinished' : 'goods',
      ])
      expect(signatures.lines().filter((line) => line === purchase).length).toBeLessThanOrEqual(1)
    }
    expect(credentials.size).toBe(cuts.length - unsigned.length)

    // Every payment counts, so nothing more fits. Nobody works on those that are released here.
    expect(await run({ ...base, purchases: ['one more'] })).toEqual({ 'one more': 'limit-exceeded' })
    const unfinished = await look.unfinished()
    expect(unfinished.map(({ purchase }) => purchase)).toEqual(unsigned)
    for (const { id } of unfinished) await look.release(id)
    const released = await run({ ...base, purchases: [...unsigned, 'one more'] })
    expect(released).toEqual({
      ...Object.fromEntries(unsigned.map((purchase) => [purchase, 'goods'])),
      'one more': 'limit-exceeded',
    })
    expect(credentials.size).toBe(cuts.length)
    expect(await look.unfinished()).toEqual([])
  })

  test('several processes at once, two of which are killed, never sign for more than the budget', async () => {
    const [ledger] = budgetOf()
    const { url, credentials } = await shop()
    const signatures = newSignatures()
    const base = { ledger, url, perDay: '0.12', signatures: signatures.file }
    const purchasesOf = (name: string) => Array.from({ length: 6 }, (_, index) => `${name}-${index}`)
    const cuts: readonly PayJob['cut'][] = [
      { when: 'after', step: 'signed', purchase: 'a-2' },
      { when: 'before', step: 'spent', purchase: 'b-1' },
      undefined,
    ]
    await Promise.all(
      ['a', 'b', 'c'].map((name, index) => run({ ...base, purchases: purchasesOf(name), cut: cuts[index] })),
    )
    const last = await run({ ...base, purchases: purchasesOf('e') })
    expect(Object.values(last ?? {}).at(-1)).toBe('limit-exceeded')
    expect(signatures.lines()).toHaveLength(12)
    expect(new Set(signatures.lines()).size).toBe(12)
    expect(credentials.size).toBe(11)
  })

  test('two processes that buy one thing at once sign once', async () => {
    const [ledger] = budgetOf()
    const { url, credentials } = await shop()
    const signatures = newSignatures()
    const purchases = Array.from({ length: 8 }, (_, index) => `thing-${index}`)
    const job = { ledger, url, perDay: '1', signatures: signatures.file, purchases }
    const outcomes = await Promise.all([run(job), run(job)])
    expect(new Set(signatures.lines()).size).toBe(8)
    expect(signatures.lines()).toHaveLength(8)
    expect(credentials.size).toBe(8)
    for (const purchase of purchases) {
      const both = outcomes.map((outcome) => outcome?.[purchase])
      expect(both).toContain('goods')
      expect(['goods', 'purchase-unfinished']).toEqual(expect.arrayContaining(both))
    }
  })
})
