import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/db/db.ts'
import { listToCheck } from './settlement-store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())
beforeEach(() => database.db.run(sql`truncate payments cascade`))

const network = 'base-sepolia'
const now = new Date('2026-11-24T12:00:00Z')
const org = (place: number) => `org_${String(place).padStart(26, '0')}`

/** Puts payments of organisations `first` and following, each with so many, due before `now`. */
async function put(
  { first, organisations, each }: { readonly first: number; readonly organisations: number; readonly each: number },
  minutesAgo: number,
): Promise<void> {
  const settlement = {
    kind: 'eip3009',
    from: `0x${'1'.repeat(40)}`,
    to: `0x${'2'.repeat(40)}`,
    value: '1',
    validAfter: '0',
    validBefore: '4000000000',
    nonce: `0x${'3'.repeat(64)}`,
    signature: { kind: 'bytes', signature: '0x01' },
    deployment: null,
  }
  await database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, chain, network, token, asset,
      decimals, raw_amount, payer, pay_to, status, created_at, valid_before, settlement, check_at)
    select 'pay_' || lpad((o * 10000 + n)::text, 26, '0'), 'plog_' || lpad((o * 10000 + n)::text, 26, '0'), 'org_' || lpad(o::text, 26, '0'), 'test',
      'key_' || lpad('1', 26, '0'), 'x402', 'verify', 'exact', ${network}, ${network}, 'USDC', ${`0x${'a'.repeat(40)}`}, 6, 1,
      ${`0x${'1'.repeat(40)}`}, ${`0x${'2'.repeat(40)}`}, 'verified', ${now}::timestamptz, ${now}::timestamptz + interval '1 hour',
      ${JSON.stringify(settlement)}::jsonb, ${now}::timestamptz - ${minutesAgo}::integer * interval '1 minute'
    from generate_series(${first}::integer, ${first + organisations - 1}::integer) as o, generate_series(1, ${each}::integer) as n`)
}

/** Look-ups of one process: each continues where the one before stopped. */
function aLook(): (most: number) => Promise<string[]> {
  const cursors = new Map<string, string>()
  return async (most) =>
    (await listToCheck(database.db, network, { now, most, cursors })).map(({ organisationId }) => organisationId)
}

test('a thousand due payments of one organisation delay no other’s payment', async () => {
  await put({ first: 1, organisations: 1, each: 1_000 }, 60)
  await put({ first: 2, organisations: 1, each: 1 }, 1)
  const listed = await aLook()(100)
  expect(listed).toHaveLength(100)
  expect(listed.slice(0, 2)).toContain(org(2))
})

test('with more organisations than one look-up has places for, the next one goes on behind them', async () => {
  await put({ first: 1, organisations: 149, each: 2 }, 60)
  await put({ first: 150, organisations: 1, each: 1 }, 1)
  const [look, another] = [aLook(), aLook()]
  expect(await look(100)).not.toContain(org(150))
  expect(await another(100), 'the look-ups of another service start at the beginning').not.toContain(org(150))
  expect(await look(100)).toContain(org(150))
})

test('a look-up visits at most 200 organisations, and the next one goes on behind them', async () => {
  await put({ first: 1, organisations: 1, each: 400 }, 60)
  await put({ first: 2, organisations: 248, each: 1 }, -60)
  await put({ first: 250, organisations: 1, each: 1 }, 1)
  const look = aLook()
  expect(await look(300)).not.toContain(org(250))
  expect(await look(300)).toContain(org(250))
})
