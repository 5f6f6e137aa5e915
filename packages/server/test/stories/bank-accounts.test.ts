import { createHash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { openDetails } from '../../src/features/withdrawals/bank-accounts/payout-account.ts'
import { type BankAccountId, findSealedDetails } from '../../src/features/withdrawals/bank-accounts/store.ts'
import { sql } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { aWorld, codeOf, type Org, type World } from '../world.ts'

let world: World
let org: Org
const logged: Buffer[] = []

beforeAll(async () => {
  const destination = new PassThrough()
  destination.on('data', (line: Buffer) => logged.push(line))
  world = await aWorld({ boot: { log: createLog({ level: 'trace', destination }) } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
})

const path = '/wallet-infra/bank-accounts'
const gbp = { accountName: 'Acme Ltd', currency: 'gbp', sortCode: '20-29-59', accountNumber: '6374 8472' }
const usd = { accountName: 'Acme Inc', currency: 'USD', routingNumber: '021000021', accountNumber: '987654321' }
const eur = { accountName: 'Acme SE', currency: 'EUR', iban: 'de89 3704 0044 0532 0130 00', swiftBic: 'cobadeff' }

test('an account is registered, read, listed and deleted, and shows only its last four characters', async () => {
  const made = await world.call(org.testKey, 'POST', path, gbp)
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^bac_/),
    accountName: 'Acme Ltd',
    currency: 'GBP',
    isActive: true,
    maskedAccount: '****8472',
    createdAt: expect.any(String),
  })
  const one = `${path}/${made.body.id}`
  expect((await world.call(org.testKey, 'GET', one)).body).toEqual(made.body)
  expect((await world.call(org.testKey, 'GET', path)).list).toContainEqual(made.body)
  expect((await world.call(org.testKey, 'DELETE', one)).status).toBe(204)
  for (const method of ['GET', 'DELETE']) {
    const gone = await world.call(org.testKey, method, one)
    expect([gone.status, codeOf(gone)]).toEqual([404, 'bank-account-not-found'])
  }
  expect((await world.call(org.testKey, 'GET', path)).list).not.toContainEqual(made.body)
})

test('accounts come newest first, page by page', async () => {
  const owner = await world.organisation()
  const ids: unknown[] = []
  for (const account of [gbp, usd, eur]) ids.unshift((await world.call(owner.testKey, 'POST', path, account)).body.id)
  const first = await world.call(owner.testKey, 'GET', `${path}?limit=2`)
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
  const second = await world.call(owner.testKey, 'GET', next)
  expect([...first.list, ...second.list].map(({ id }) => id)).toEqual(ids)
  expect(second.headers.get('link')).toBeNull()
})

test('every fault is named at once, by its JSON Pointer', async () => {
  const { errors } = (
    await world.call(org.testKey, 'POST', path, {
      accountName: 7,
      currency: 'EUR',
      iban: 'DE00',
      accountNumber: '63748472',
      colour: 'red',
    })
  ).body
  const paths = z
    .array(z.object({ path: z.string() }))
    .parse(errors)
    .map(({ path: at }) => at)
  expect(paths.sort()).toEqual(['/accountName', '/accountNumber', '/colour', '/iban', '/swiftBic'])
})

test('payouts support exactly three currencies', async () => {
  const refused = await world.call(org.testKey, 'POST', path, { accountName: 'A', currency: 'CHF', iban: eur.iban })
  expect([refused.status, codeOf(refused), refused.body.supported]).toEqual([
    422,
    'unsupported-currency',
    ['EUR', 'GBP', 'USD'],
  ])
})

test('no table, log line, audit record or stored answer contains an account’s details, nor a digest to guess them from', async () => {
  const details = ['63748472', '202959', '021000021', '987654321', 'DE89370400440532013000', 'COBADEFF', '3704 0044']
  for (const [at, account] of [gbp, usd, eur].entries())
    await world.call(org.testKey, 'POST', path, account, { 'idempotency-key': `details-${at}` })
  await world.call(org.testKey, 'POST', path, { ...gbp, sortCode: '1' }, { 'idempotency-key': 'details-refused' })
  const { db } = world.database
  const Table = z.object({ name: z.string() })
  const tables = await db.many(Table, sql`select tablename as name from pg_tables where schemaname = 'public'`)
  const Rows = z.object({ text: z.string().nullable() })
  for (const { name } of tables) {
    const { text } = await db.one(
      Rows,
      sql`select query_to_xml(format('select * from %I', ${name}::text), false, false, '')::text as text`,
    )
    expect(
      details.filter((detail) => text?.includes(detail)),
      name,
    ).toEqual([])
    const asBase64 = details.map((detail) => Buffer.from(detail).toString('base64').replace(/=+$/, ''))
    expect(
      asBase64.filter((detail) => text?.includes(detail)),
      name,
    ).toEqual([])
  }
  const digest = createHash('sha256').update(`POST ${path}\n`).update(JSON.stringify(gbp)).digest()
  const Count = z.object({ count: z.bigint() })
  expect(
    (await db.one(Count, sql`select count(*) as count from idempotency_keys where fingerprint = ${digest}`)).count,
  ).toBe(0n)
  const lines = Buffer.concat(logged).toString('utf8')
  expect(lines).toContain('purser is up')
  expect(details.filter((detail) => lines.includes(detail))).toEqual([])
})

test('a repeat with the same key returns the same account, and another body is refused', async () => {
  const again = () => world.call(org.testKey, 'POST', path, usd, { 'idempotency-key': 'one-account' })
  const [first, ...others] = await Promise.all(Array.from({ length: 20 }, again))
  const answered = [first, ...others].filter((response) => response?.status === 201)
  expect(new Set(answered.map((response) => response?.body.id)).size).toBe(1)
  const later = await again()
  expect(later.body).toEqual(answered[0]?.body)
  expect(later.headers.get('idempotency-replayed')).toBe('true')
  const other = await world.call(org.testKey, 'POST', path, eur, { 'idempotency-key': 'one-account' })
  expect([other.status, codeOf(other)]).toEqual([422, 'idempotency-key-reused'])
})

test('details can be decrypted only for their own account, organisation and environment, and are gone once it is deleted', async () => {
  const { deps } = world.server
  const tenant = { organisationId: org.id, environment: 'test' as const }
  const id = String((await world.call(org.testKey, 'POST', path, eur)).body.id) as BankAccountId
  const sealed = (await findSealedDetails(deps.db, tenant, id)) ?? new Uint8Array()
  expect(openDetails({ ...deps, tenant }, id, sealed)).toEqual({
    currency: 'EUR',
    iban: 'DE89370400440532013000',
    swiftBic: 'COBADEFF',
  })
  const other = await world.organisation()
  const elsewhere = [
    { tenant: { ...tenant, environment: 'live' as const }, id },
    { tenant: { ...tenant, organisationId: other.id }, id },
    { tenant, id: `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}` as BankAccountId },
  ]
  for (const place of elsewhere)
    expect(() => openDetails({ ...deps, tenant: place.tenant }, place.id, sealed)).toThrow()
  await world.call(org.testKey, 'DELETE', `${path}/${id}`)
  expect(await findSealedDetails(deps.db, tenant, id)).toBeUndefined()
  const Kept = z.object({ details: z.null() })
  await world.database.db.one(Kept, sql`select details from bank_accounts where id = ${id}`)
})
