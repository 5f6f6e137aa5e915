import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { takeToApply } from '../src/features/approvals/store.ts'
import { takeDue as takeRefunds } from '../src/features/payments/refunds/store.ts'
import type { DueCursors } from '../src/features/plans/index.ts'
import { takeUnsigned as takeTransfers } from '../src/features/transfers/gasless/store.ts'
import { listDueForPoll } from '../src/features/transfers/partner-store.ts'
import { listDeletions } from '../src/features/vaults/files/store.ts'
import { listPending, listUnaskedIn } from '../src/features/wallets/deposits/pending-store.ts'
import { listDue as listSweeps } from '../src/features/wallets/managed/auto-store.ts'
import { listDueDeposits } from '../src/features/wallets/screening/deposit-store.ts'
import { listDueWallets } from '../src/features/wallets/screening/store.ts'
import { takeUnsigned as takeSweeps } from '../src/features/wallets/sweep/relay-store.ts'
import { listPlanned as listOnTempo } from '../src/features/wallets/sweep/tempo-store.ts'
import { listQueuesByShares } from '../src/features/webhooks/delivery/queue-store.ts'
import { dbInside, type Sql, sql, type Tx } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { type Expressions, fillTable, statement } from './fill-table.ts'
import { rowsRead } from './rows-read.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

/** Rows of one organisation that are due before those of all others. */
const busy = 12_000
/** Other organisations. Each has one due row. */
const others = 150
const last = busy + others

const owner = `'org_' || case when n <= ${busy} then 0 else n end`
const dueAt = `now() - interval '1 day' + n * interval '1 second'`
/** As `dueAt`, for lists of rows that wait for a block. Those up to `dueBlocks` are due. */
const dueBlock = 'n'
const dueBlocks = 500_000_000n
const childId = `'cad_' || lpad(n::text, 26, '0')`
const now = new Date()
const until = new Date(now.getTime() + 86_400_000)

interface List {
  readonly name: string
  readonly table: string
  readonly rows: Expressions
  /** The change after which no row is due. */
  readonly idle: string
  /** Most rows that one list has. */
  readonly most: number
  /** The list. Its last statement returns the rows, or `taken` does. */
  readonly read: (tx: Tx, cursors: DueCursors) => Promise<unknown>
  readonly taken?: Sql
  /** Rows of other tables that the list reads. */
  readonly beside?: readonly (readonly [table: string, rows: Expressions])[]
}

/** The column by which rows of a list are due, and expressions of one that is not due yet and of one that is due the later, the later its organisation. */
function dueColumnOf(rows: Expressions): { readonly name: string; readonly notDue: string; readonly byOwner: string } {
  const name = Object.keys(rows).find((one) => rows[one] === dueAt || rows[one] === dueBlock) ?? ''
  return rows[name] === dueBlock
    ? { name, notDue: `${dueBlocks + 1n}`, byOwner: '(n % 20) * 3600 + n' }
    : {
        name,
        notDue: `now() + interval '1 day'`,
        byOwner: `now() - interval '1 day' + (n % 20) * interval '1 hour' + n * interval '1 second'`,
      }
}

const Owner = z.object({ organisationId: z.string() })

const lists: readonly List[] = [
  {
    name: 'decisions that are to be applied',
    table: 'movement_approvals',
    rows: { id: `'apr_' || n`, kind: `'transfer'`, status: `'granted'`, organisation_id: owner, apply_at: dueAt },
    idle: `apply_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) => takeToApply(tx, { kinds: ['transfer', 'refund'], now, until, cursors }),
  },
  {
    name: 'automatic sweeps',
    table: 'master_wallets',
    rows: {
      id: `'mwt_' || n`,
      network: `'base'`,
      auto_sweep: `'{}'`,
      organisation_id: owner,
      auto_sweep_due_at: dueAt,
    },
    idle: `auto_sweep_due_at = now() + interval '2 days'`,
    most: 20,
    read: (tx, cursors) => listSweeps(tx, 'base', { now, most: 20, cursors }),
  },
  {
    name: 'transfers at a partner',
    table: 'transfers',
    rows: {
      id: `'wtx_' || n`,
      partner: `'relay'`,
      from_network: `'base'`,
      left_at: 'now()',
      organisation_id: owner,
      look_at: dueAt,
    },
    idle: `look_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) => listDueForPoll(tx, { now, cursors }),
  },
  {
    name: 'refunds whose transfers are to be read',
    table: 'payment_refunds',
    rows: { id: `'rfd_' || n`, status: `'pending'`, organisation_id: owner, check_at: dueAt },
    idle: `check_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) => takeRefunds(tx, { now, most: 100, cursors }),
    taken: sql`select organisation_id from payment_refunds where check_at > ${now}`,
  },
  {
    name: 'sweeps to be signed',
    table: 'sweep_transfers',
    rows: {
      ...{ sweep_id: `'swp_' || repeat('0', 26)`, child_address_id: childId, network: `'base'`, status: `'planned'` },
      ...{ organisation_id: owner, share_owner: owner, tried_at: dueAt },
    },
    idle: `status = 'failed'`,
    most: 100,
    read: (tx, cursors) => takeSweeps(tx, 'base', { most: 100, cursors }),
    taken: sql`select organisation_id from sweep_transfers where tried_at = now()`,
    beside: [
      ['child_addresses', { id: childId, master_wallet_id: `'mwt_1'` }],
      ['master_wallets', { id: `'mwt_' || n` }],
    ],
  },
  {
    name: 'sweeps on Tempo',
    table: 'sweep_transfers',
    rows: {
      ...{ sweep_id: `'swp_' || repeat('0', 26)`, child_address_id: childId, network: `'tempo'`, status: `'planned'` },
      ...{ organisation_id: owner, share_owner: owner, tried_at: dueAt },
    },
    idle: `status = 'failed'`,
    most: 100,
    read: (tx, cursors) => listOnTempo(tx, 'tempo', { most: 100, cursors }),
  },
  {
    name: 'transfers to be signed',
    table: 'transfer_authorisations',
    rows: { transfer_id: `'wtx_' || n`, network: `'base'`, status: `'planned'`, share_owner: owner, tried_at: dueAt },
    idle: `status = 'failed'`,
    most: 100,
    read: (tx, cursors) => takeTransfers(tx, 'base', { most: 100, cursors }),
    taken: sql`select share_owner as organisation_id from transfer_authorisations where tried_at = now()`,
    beside: [['transfers', { id: `'wtx_' || n` }]],
  },
  {
    name: 'queues of webhooks',
    table: 'webhook_queues',
    rows: { webhook_id: `'wh_' || n`, organisation_id: owner, look_at: dueAt },
    idle: `look_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) => listQueuesByShares(tx, { now, most: 100, cursors }),
  },
  {
    name: 'deposits to screen',
    table: 'wallet_transactions',
    rows: { id: `'wtx_' || n`, direction: `'in'`, network: `'base'`, organisation_id: owner, aml_due_at: dueAt },
    idle: `aml_due_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) => listDueDeposits(tx, 'test', { now, most: 100, cursors }),
  },
  {
    name: 'deposits to confirm',
    table: 'wallet_transactions',
    rows: { id: `'wtx_' || n`, status: `'pending'`, network: `'base'`, organisation_id: owner, block_number: dueBlock },
    idle: `block_number = ${dueBlocks + 1n}`,
    most: 100,
    read: (tx, cursors) =>
      listPending(dbInside(tx), 'base', 'unasked', { upTo: dueBlocks, at: now, most: 100, cursors }),
  },
  {
    name: 'deposits about which the nodes were undecided',
    table: 'wallet_transactions',
    rows: { id: `'wtx_' || n`, status: `'pending'`, network: `'base'`, organisation_id: owner, undecided_at: dueAt },
    idle: `undecided_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) =>
      listPending(dbInside(tx), 'base', 'undecided', { upTo: dueBlocks, at: now, most: 100, cursors }),
  },
  {
    name: 'deposits of a range of blocks to vote on again',
    table: 'wallet_transactions',
    rows: { id: `'wtx_' || n`, status: `'pending'`, network: `'base'`, organisation_id: owner, block_number: dueBlock },
    idle: `block_number = ${dueBlocks + 1n}`,
    most: 100,
    read: (tx, cursors) => listUnaskedIn(dbInside(tx), 'base', { from: 1n, to: dueBlocks, most: 100, cursors }),
  },
  {
    name: 'wallets to screen',
    table: 'byo_wallets',
    rows: { id: `'byw_' || n`, organisation_id: owner, aml_due_at: dueAt },
    idle: `aml_due_at = now() + interval '2 days'`,
    most: 100,
    read: (tx, cursors) => listDueWallets(tx, 'test', { now, most: 100, cursors }),
  },
  {
    name: 'blobs to delete',
    table: 'blob_deletions',
    rows: { blob_key: `'blob_' || lpad(to_hex(n), 32, '0')`, share_owner: owner, due_at: dueAt },
    idle: `due_at = now() + interval '2 days'`,
    most: 100,
    read: async (tx, cursors) => {
      const due = await listDeletions(tx, { now, most: 100, cursors })
      const keys = due.map(({ blobKey }) => blobKey)
      await tx.many(
        Owner,
        sql`select share_owner as organisation_id from blob_deletions where blob_key = any(${keys}::text[])`,
      )
      return due
    },
  },
]

/** The organisations of the rows that a list returns, and how many rows of its table it reads. Only some columns of the rows are filled. */
function listed({ table, read, taken }: List, cursors: DueCursors) {
  return database.db.tx(
    async (tx) => {
      let rows: readonly unknown[] = []
      const reading: Tx = {
        ...tx,
        many: async (row, of) => {
          rows = await tx.many(z.looseObject({}), of)
          return z.array(row).safeParse(rows).data ?? []
        },
      }
      const before = await rowsRead(tx, `^${table}$`)
      await read(reading, cursors)
      const count = Number((await rowsRead(tx, `^${table}$`)) - before)
      if (taken !== undefined) rows = await tx.many(Owner, taken)
      const owners = z
        .array(Owner)
        .parse(rows)
        .map(({ organisationId }) => organisationId)
      return { owners, read: count }
    },
    { readsInOrder: true },
  )
}

describe.each(lists)('$name', (list) => {
  test('12,000 older ones of one organisation hide none of others, and the list reads by index', async () => {
    const { db } = database
    for (const table of [list.table, ...(list.beside ?? []).map(([name]) => name)])
      await db.run(statement(`truncate ${table} cascade`))
    await fillTable(db, list.table, list.rows, { last })
    for (const [table, rows] of list.beside ?? []) await fillTable(db, table, rows, { last })
    const cursors: DueCursors = new Map()
    const reached = new Set<string>()
    // Each list reaches as many organisations as it has rows.
    const listsNeeded = Math.ceil((others + 1) / list.most) + 1
    for (let count = 0; count < listsNeeded; count++) {
      const { owners, read } = await listed(list, cursors)
      expect(read).toBeLessThan(1_500)
      for (const one of owners) reached.add(one)
    }
    expect(reached.size).toBe(others + 1)

    await db.run(statement(`update ${list.table} set ${list.idle}`))
    await db.run(statement(`vacuum (analyze) ${list.table}`))
    const idle = await db.tx(
      async (tx) => {
        const before = await rowsRead(tx, `^${list.table}$`)
        expect(await list.read(tx, cursors)).toEqual([])
        return Number((await rowsRead(tx, `^${list.table}$`)) - before)
      },
      { readsInOrder: true },
    )
    expect(idle).toBeLessThan(20)
  }, 120_000)
})

test.each(lists.filter(({ rows }) => rows.tried_at === undefined))(
  '$name: organisations of which nothing is due take no share, and the reads stay few',
  async (list) => {
    const { db } = database
    await db.run(statement(`truncate ${list.table} cascade`))
    const [quiet, loud, each] = [40, 100, 120]
    const ownerColumn = list.rows.organisation_id === undefined ? 'share_owner' : 'organisation_id'
    const due = dueColumnOf(list.rows)
    // "-" comes before every digit, so a look-up visits these first.
    const notDue = { ...list.rows, [ownerColumn]: `'org_-' || n`, [due.name]: due.notDue }
    await fillTable(db, list.table, notDue, { last: quiet })
    const ofLoud = { ...list.rows, [ownerColumn]: `'org_' || n % ${loud}` }
    await fillTable(db, list.table, ofLoud, { first: quiet + 1, last: quiet + loud * each })
    const cursors: DueCursors = new Map()
    const reached = new Set<string>()
    for (let count = 0; count < Math.ceil(loud / list.most); count += 1) {
      const { owners, read } = await listed(list, cursors)
      expect(read).toBeLessThan(1_500)
      // Some lists show what they took by its new time, which those that are not due have too.
      for (const one of owners) if (!one.startsWith('org_-')) reached.add(one)
    }
    expect(reached.size).toBe(loud)
  },
  60_000,
)

test.each(lists.filter(({ rows }) => rows.tried_at !== undefined))(
  '$name: rows are listed whatever the time of their last attempt',
  async (list) => {
    const { db } = database
    for (const table of [list.table, ...(list.beside ?? []).map(([name]) => name)])
      await db.run(statement(`truncate ${table} cascade`))
    await fillTable(db, list.table, { ...list.rows, tried_at: `now() + interval '1 day'` }, { last: 3 })
    for (const [table, rows] of list.beside ?? []) await fillTable(db, table, rows, { last: 3 })
    const { owners } = await listed(list, new Map())
    expect(owners).toHaveLength(3)
  },
)

/** Lists whose rows name their organisation and not its share owner. */
const byOrganisation = lists.filter(({ rows }) => rows.organisation_id !== undefined && rows.share_owner === undefined)

describe.each(byOrganisation)('$name of ten organisations of one account', ({ table, rows, most, ...list }) => {
  test('get the share of one, and each of them gets some of it in time', async () => {
    const { db } = database
    const [ownerOf, accountOf] = [`'org_' || lpad((n % 20)::text, 2, '0')`, `case when n % 20 < 10 then 'acc_1' end`]
    for (const name of ['organisations', table]) await db.run(statement(`truncate ${name} cascade`))
    await fillTable(db, 'organisations', { id: ownerOf, plan: `'hobby'`, quota_account_id: accountOf }, { last: 20 })
    const due = dueColumnOf(rows)
    await fillTable(db, table, { ...rows, organisation_id: ownerOf, [due.name]: due.byOwner }, { last: 2_000 })
    const isOfAccount = (one: string): boolean => one < 'org_10'
    const cursors: DueCursors = new Map()
    const reached = new Set<string>()
    for (let count = 0; count < 200 && reached.size < 20; count++) {
      const { owners, read } = await listed({ table, rows, most, ...list }, cursors)
      expect(read).toBeLessThan(1_500)
      expect(new Set(owners.filter((one) => !isOfAccount(one))).size).toBe(10)
      expect(owners.filter(isOfAccount).length).toBeLessThanOrEqual(Math.ceil(most / 11))
      for (const one of owners) reached.add(one)
    }
    expect(reached.size).toBe(20)
  }, 60_000)
})
