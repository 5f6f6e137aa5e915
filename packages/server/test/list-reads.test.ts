import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AuditFilters, listAuditRecords } from '../src/features/organisations/audit-store.ts'
import { listBatch } from '../src/features/payments/settlement-store.ts'
import { listPayments } from '../src/features/payments/store.ts'
import { listTransfers } from '../src/features/transfers/store.ts'
import { listVaults } from '../src/features/vaults/store.ts'
import { listTransactions, type TransactionFilter } from '../src/features/wallets/deposits/transaction-store.ts'
import { listAttempts } from '../src/features/webhooks/delivery-store.ts'
import { listEvents } from '../src/features/webhooks/event-store.ts'
import { listWithdrawals } from '../src/features/withdrawals/withdraw/store.ts'
import type { Queryable } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import type { PaymentId } from '../src/platform/ids.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { fillTable } from './fill-table.ts'
import { defineIdAt, readBy } from './rows-read.ts'

let database: TestDatabase

const rows = 12_000
/** Rows that a list may read besides those of its page: a few of each end. */
const readsMax = 30n
const limit = 10
const page = { limit, after: undefined }
const tenant: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' }
const now = new Date()
/** One row in each second; ids sort as the times do. */
const at = (n: number): Date => new Date(now.getTime() - 30_000_000 + n * 1_000)
/**
 * Time of the cursors: a tenth of the rows are older. Among the oldest hundredth PostgreSQL may expect a handful where there are fifty, and then it
 * reads and sorts them all, which is as cheap. Its estimate depends on the letters of the ids, and so on the time of the run.
 */
const cursorAt = at(1_200).getTime()
const createdAt = `to_timestamp(${(now.getTime() - 30_000_000) / 1_000} + n)`

beforeAll(async () => {
  database = await freshDatabase()
  const organisation = { organisation_id: `'${tenant.organisationId}'`, environment: `'test'`, created_at: createdAt }
  const idOf = (prefix: string) => `id_at('${prefix}', ${now.getTime() - 30_000_000} + n::bigint * 1000)`
  await defineIdAt(database.db)
  const of: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    payments: {
      id: idOf('pay'),
      log_id: idOf('plog'),
      route: `case when n % 4 = 0 then 'often' else 'always' end`,
      wallet_id: `'wallet'`,
      api_key_id: `'key'`,
      protocol: `'x402'`,
      status: `'settled'`,
      chain: `'base'`,
      payer: `'0x036CbD53842c5426634e7929541eC2318f3dCF7e'`,
    },
    relays: {
      subject_id: idOf('pay'),
      purpose: `'payments'`,
      state: `'settled'`,
      transaction_id: `'ctx_' || n / 10`,
      nonce: `'0x' || n`,
    },
    events: { id: idOf('evt'), type: `'payment.received'`, payload: `'{}'` },
    wallet_transactions: {
      id: idOf('wtx'),
      wallet_id: `'wallet'`,
      token_symbol: `'USDC'`,
      network: `'base-sepolia'`,
      direction: `'in'`,
      status: `'confirmed'`,
    },
    vaults: { id: idOf('vlt'), sealed_at: 'null', persisted_at: 'null', expires_at: 'null' },
    transfers: { id: idOf('wtx'), wallet_id: `'wallet'`, purpose: `'transfer'`, status: `'confirmed'` },
    withdrawals: { id: idOf('wdr'), status: `'completed'` },
    webhook_attempts: { id: idOf('att'), webhook_id: `'wh_1'`, status: `'succeeded'`, delivery_id: `'del_' || n` },
    webhook_deliveries: { id: `'del_' || n` },
    audit_log: {
      sequence: 'n',
      id: idOf('aud'),
      action: `'vaults.create'`,
      target: `'vlt_' || n`,
      actor: `'{"kind":"api-key","apiKeyId":"key_1"}'`,
    },
  }
  for (const [table, columns] of Object.entries(of))
    await fillTable(database.db, table, { ...organisation, ...columns }, { last: rows })
  const member = { ...organisation, key: `'plan'`, value: `case when n % 4 = 0 then 'often' else 'always' end` }
  for (const prefix of ['wtx', 'wdr'])
    await fillTable(database.db, 'metadata_values', { ...member, row_id: idOf(prefix) }, { last: rows })
}, 60_000)
afterAll(() => database?.drop())

const logs = (filters: Parameters<typeof listPayments>[2], after?: string) => (db: Queryable) =>
  listPayments(db, tenant, filters, { limit, after })
/** The id of the payment with this number. */
const paymentAt = (n: number): PaymentId => `pay_${firstIdAt('pay', at(n).getTime()).slice(4, 14)}${'0'.repeat(16)}`
const transactions = (filter: TransactionFilter) => (db: Queryable) =>
  listTransactions(db, tenant, { walletId: 'wallet', filter }, page)
const attempts = (filters: Omit<Parameters<typeof listAttempts>[2], 'webhookId'>) => (db: Queryable) =>
  listAttempts(db, tenant, { ...filters, webhookId: 'wh_1' }, page)
const audit = (filters: AuditFilters) => (db: Queryable) => listAuditRecords(db, tenant, filters, page)
const full = limit + 1
const plan = (value: string) => ({ key: 'plan', value })
const deep = { limit, after: firstIdAt('wtx', cursorAt) }
const [past, future] = [new Date('2020-01-01T00:00:00Z'), new Date('9999-01-01T00:00:00Z')]

const lists: readonly (readonly [name: string, rows: number, list: (db: Queryable) => Promise<unknown>])[] = [
  ['logs', full, logs({})],
  ['logs after a cursor', full, logs({}, firstIdAt('plog', cursorAt))],
  ['logs of a route', full, logs({ route: 'often' })],
  ['logs of a route, after a cursor', full, logs({ route: 'often' }, firstIdAt('plog', cursorAt))],
  ['logs of no route', 0, logs({ route: 'never' })],
  ['logs of no protocol', 0, logs({ protocol: 'mpp' })],
  ['logs of a status that none has', 0, logs({ status: 'voided' })],
  ['logs of a status', full, logs({ status: 'settled' })],
  ['logs of a status in the past', 0, logs({ status: 'voided', from: at(10), to: at(9_000) })],
  ['logs of no chain', 0, logs({ chain: 'ethereum' })],
  ['logs of a chain, after a cursor', full, logs({ chain: 'base' }, firstIdAt('plog', cursorAt))],
  ['logs of no payer', 0, logs({ payer: '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0' })],
  ['logs of a payer', full, logs({ payer: '0x036cbd53842c5426634e7929541ec2318f3dcf7e' })],
  ['the payments of a batch', 10, (db) => listBatch(db, tenant, 'ctx_7')],
  ['the payments of no batch', 0, (db) => listBatch(db, tenant, 'ctx_none')],
  ['logs of a batch', 2, logs({ amongIds: [1, 2, 12_001].map(paymentAt) })],
  ['logs of a batch with another filter', 0, logs({ amongIds: [1, 2].map(paymentAt), status: 'voided' })],
  ['logs of no wallet', 0, logs({ walletId: 'other' })],
  ['logs of no key', 0, logs({ apiKeyId: 'other' })],
  ['logs of a route with another key', 0, logs({ route: 'never', apiKeyId: 'key', walletId: 'wallet' })],
  ['logs before there were any', 0, logs({ to: new Date('2020-01-01T00:00:00Z') })],
  ['logs before 1970', 0, logs({ from: new Date('1960-01-01T00:00:00Z'), to: new Date('1961-01-01T00:00:00Z') })],
  ['logs of the future', 0, logs({ from: new Date('9999-01-01T00:00:00Z') })],
  ['logs of one route in the past', 0, logs({ route: 'never', from: at(10), to: at(9_000) })],
  ['events of no type', 0, (db) => listEvents(db, tenant, { type: 'vault.sealed', oldest: at(0) }, page)],
  ['events of a type', full, (db) => listEvents(db, tenant, { type: 'payment.received', oldest: at(0) }, page)],
  ['transactions of no direction', 0, transactions({ direction: 'out' })],
  ['transactions of no token', 0, transactions({ token: 'EURC' })],
  ['transactions of no network', 0, transactions({ network: 'base' })],
  ['transactions of a token and a network', full, transactions({ token: 'USDC', network: 'base-sepolia' })],
  ['sealed vaults', 0, (db) => listVaults(db, tenant, { status: 'sealed', now }, page)],
  ['active vaults', full, (db) => listVaults(db, tenant, { status: 'active', now }, page)],
  ['transfers of no wallet', 0, (db) => listTransfers(db, tenant, { walletId: 'other' }, page)],
  ['failed transfers', 0, (db) => listTransfers(db, tenant, { status: 'failed' }, page)],
  ['transfers of the past', 0, (db) => listTransfers(db, tenant, { status: 'confirmed', to: past }, page)],
  ['transactions on hold', full, transactions({ onHold: 'true' })],
  ['transactions that were withdrawn', 0, transactions({ status: 'withdrawn' })],
  ['transactions of the past', 0, transactions({ to: past })],
  ['failed withdrawals', 0, (db) => listWithdrawals(db, tenant, { status: 'failed' }, page)],
  ['withdrawals of the future', 0, (db) => listWithdrawals(db, tenant, { from: future }, page)],
  ['events of the past', 0, (db) => listEvents(db, tenant, { to: past, oldest: at(0) }, page)],
  ['failed attempts', 0, attempts({ status: 'failed' })],
  ['attempts of the past', 0, attempts({ to: past })],
  ['audit records of no action', 0, audit({ action: 'vaults.persist' })],
  ['audit records of an action', full, audit({ action: 'vaults.create' })],
  ['audit records of one target', 1, audit({ target: 'vlt_3' })],
  ['audit records of no actor', 0, audit({ actor: 'key_2' })],
  ['audit records of an actor', full, audit({ actor: 'key_1' })],
  ['audit records of the past', 0, audit({ to: past })],
  ['audit records of the future', 0, audit({ from: future })],
  ['transfers with a member', full, (db) => listTransfers(db, tenant, { metadata: plan('often') }, page)],
  [
    'transfers with a member, after a cursor',
    full,
    (db) => listTransfers(db, tenant, { metadata: plan('often') }, deep),
  ],
  [
    'transfers with a member in the past',
    0,
    (db) => listTransfers(db, tenant, { metadata: plan('often'), to: past }, page),
  ],
  ['transfers with no such member', 0, (db) => listTransfers(db, tenant, { metadata: plan('never') }, page)],
  [
    'transfers of a wallet and a status with a member',
    full,
    (db) => listTransfers(db, tenant, { metadata: plan('always'), walletId: 'wallet', status: 'confirmed' }, page),
  ],
  ['withdrawals with a member', full, (db) => listWithdrawals(db, tenant, { metadata: plan('often') }, page)],
  ['withdrawals with no such member', 0, (db) => listWithdrawals(db, tenant, { metadata: plan('never') }, page)],
  ['transfers of a wallet', full, (db) => listTransfers(db, tenant, { walletId: 'wallet' }, page)],
]

test.each(lists)(
  'a page of %s reads a bounded number of rows, whatever the table holds',
  async (_name, expected, list) => {
    for (const mode of ['force_generic_plan', 'force_custom_plan'] as const) {
      const { rows: found, scanned } = await readBy(database.db, list, mode)
      expect(found, mode).toBe(expected)
      expect(scanned, mode).toBeLessThanOrEqual(readsMax)
    }
  },
)

test('a past period reads its own rows and at most a minute more at each end', async () => {
  const { rows: found, scanned } = await readBy(database.db, logs({ from: at(200), to: at(205) }), 'force_generic_plan')
  expect(found).toBe(5)
  expect(scanned).toBeLessThanOrEqual(130n)
})
