import { afterAll, beforeAll, expect, test } from 'vitest'
import { listApprovals } from '../src/features/approvals/store.ts'
import { listApiKeys } from '../src/features/organisations/key-store.ts'
import { listMembers } from '../src/features/organisations/member-store.ts'
import { listRoutes } from '../src/features/registry/store.ts'
import { listRequests } from '../src/features/requests/store.ts'
import { listSessions } from '../src/features/sessions/store.ts'
import { listTokens } from '../src/features/vaults/tokens/store.ts'
import { listChildAddresses } from '../src/features/wallets/children/store.ts'
import { listMasterWallets } from '../src/features/wallets/managed/store.ts'
import { listByoWallets } from '../src/features/wallets/store.ts'
import { listSweeps } from '../src/features/wallets/sweep/store.ts'
import { listWebhooks } from '../src/features/webhooks/store.ts'
import { listBankAccounts } from '../src/features/withdrawals/bank-accounts/store.ts'
import type { Queryable } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import type { Tenant } from '../src/platform/tenant.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { fillTable } from './fill-table.ts'
import { defineIdAt, readBy } from './rows-read.ts'

let database: TestDatabase

const rows = 12_000
const readsMax = 60n
const limit = 10
const tenant: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' }
const firstMs = Date.now() - 30_000_000
/** One row in each second; ids sort as the times do. */
const idAt = <P extends string>(prefix: P, n: number) => firstIdAt(prefix, firstMs + n * 1_000) as `${P}_${string}`
const master = idAt('mwt', 1)

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  await defineIdAt(db)
  const idOf = (prefix: string) => `id_at('${prefix}', ${firstMs} + n::bigint * 1000)`
  const own = {
    organisation_id: `'${tenant.organisationId}'`,
    environment: `'test'`,
    created_at: `to_timestamp(${firstMs / 1_000} + n)`,
  }
  const approval = {
    account_id: `'acc_1'`,
    master_wallet_id: `'${master}'`,
    wallet_id: `'${master}'`,
    status: `'refused'`,
  }
  const of: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    accounts: { id: `'acc_' || n` },
    master_wallets: { id: `case when n = 1 then '${master}' else ${idOf('mwt')} end` },
    byo_wallets: { id: idOf('byw') },
    child_addresses: { id: idOf('cad'), master_wallet_id: `'${master}'`, child_index: 'n' },
    sweeps: { id: idOf('swp'), master_wallet_id: `'${master}'` },
    sweep_transfers: { sweep_id: idOf('swp') },
    movement_approvals: { id: idOf('apr'), ...approval },
    sessions: { id: idOf('sess') },
    registry_routes: { id: idOf('rte') },
    vault_tokens: { id: idOf('vat'), vault_id: `'vlt_1'`, expires_at: `now() + interval '1 day'` },
    webhooks: { id: idOf('wh') },
    api_keys: { id: idOf('key') },
    members: { account_id: `'acc_' || n` },
    bank_accounts: { id: idOf('bac') },
    request_log: { id: idOf('req') },
  }
  for (const [table, columns] of Object.entries(of))
    await fillTable(db, table, table === 'accounts' ? columns : { ...own, ...columns }, { last: rows })
}, 120_000)
afterAll(() => database?.drop())

const page = { limit, after: undefined }
const behind = (prefix: string) => ({ limit, after: idAt(prefix, 100) })
const childAddressId = idAt('cad', rows + 1)
const approvals = { ...page, status: undefined, walletId: undefined }

const lists: readonly (readonly [name: string, rows: number, list: (db: Queryable) => Promise<unknown>])[] = [
  ['managed wallets', limit + 1, (db) => listMasterWallets(db, tenant, {}, behind('mwt'))],
  ['the managed wallet of a child', 0, (db) => listMasterWallets(db, tenant, { childAddressId }, page)],
  ['registered wallets', limit + 1, (db) => listByoWallets(db, tenant, behind('byw'))],
  ['child addresses', limit + 1, (db) => listChildAddresses(db, tenant, master, { limit, below: '100' })],
  ['sweeps', limit + 1, (db) => listSweeps(db, tenant, master, behind('swp'))],
  ['approvals', limit + 1, (db) => listApprovals(db, tenant, { ...approvals, ...behind('apr') })],
  ['approvals that wait', 0, (db) => listApprovals(db, tenant, { ...approvals, status: 'waiting' })],
  ['approvals of a status that none has', 0, (db) => listApprovals(db, tenant, { ...approvals, status: 'granted' })],
  ['approvals of a wallet that has none', 0, (db) => listApprovals(db, tenant, { ...approvals, walletId: 'mwt_none' })],
  ['sessions', limit + 1, (db) => listSessions(db, tenant, behind('sess'))],
  ['routes', limit + 1, (db) => listRoutes(db, tenant, {}, behind('rte'))],
  [
    'tokens of a vault',
    limit + 1,
    (db) => listTokens(db, tenant, { vaultId: 'vlt_1', now: new Date(), ...behind('vat') }),
  ],
  ['webhooks', limit + 1, (db) => listWebhooks(db, tenant, behind('wh'))],
  ['keys', limit + 1, (db) => listApiKeys(db, tenant, behind('key'))],
  ['members', limit + 1, (db) => listMembers(db, tenant.organisationId, { limit, after: '100' })],
  ['bank accounts', limit + 1, (db) => listBankAccounts(db, tenant, behind('bac'))],
  ['requests', limit + 1, (db) => listRequests(db, tenant, {}, behind('req'))],
]

test.each(lists)(
  'a page of %s, far behind the first, reads a bounded number of rows',
  async (_name, expected, list) => {
    for (const mode of ['force_generic_plan', 'force_custom_plan'] as const) {
      const { rows: found, scanned } = await readBy(database.db, list, mode)
      expect(found, mode).toBe(expected)
      expect(scanned, mode).toBeLessThanOrEqual(readsMax)
    }
  },
)
