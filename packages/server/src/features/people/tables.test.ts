import { randomBytes } from 'node:crypto'
import { getAuthTables } from 'better-auth/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { openPool, sql } from '../../platform/db/db.ts'
import { migrate } from '../../platform/db/migrate.ts'
import { createLog } from '../../platform/log.ts'
import { createAuth } from './auth.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

test('the tables of our migrations are what this version of better-auth expects', async () => {
  const pool = openPool({ url: database.url, connectionsMax: 1, log: createLog({ level: 'silent' }) })
  const { options } = createAuth(toyDeps(database.db), {
    secret: randomBytes(32).toString('hex'),
    pool,
    dashboardUrl: 'http://dashboard.test',
    isSignUpOpen: false,
    issuers: [],
    sendMail: undefined,
  })
  await pool.end()
  const expected = Object.values(getAuthTables(options)).flatMap(({ modelName, fields }) =>
    ['id', ...Object.entries(fields).map(([name, field]) => field.fieldName ?? name)].map(
      (name) => `${modelName}.${name}`,
    ),
  )
  const columns = await database.db.many(
    z.object({ name: z.string() }),
    sql`
    select table_name || '.' || column_name as name from information_schema.columns
    where table_schema = 'auth' and table_name not in ('sign_in_links', 'sign_in_mails')`,
  )
  expect(expected.length).toBeGreaterThan(30)
  expect(columns.map(({ name }) => name).sort()).toEqual(expected.sort())
})

test('a database of before has its accounts, its members stay and who never signed in is invited', async () => {
  const { db, url } = database
  await db.run(sql`drop schema auth cascade`)
  await db.run(sql`alter table accounts drop column user_id`)
  await db.run(sql`alter table members drop column accepted_at, drop column invited_email`)
  await db.run(
    sql`alter table members add constraint members_account_id_fkey foreign key (account_id) references accounts (id)`,
  )
  await db.run(sql`alter table listener_secrets drop constraint listener_secrets_pkey`)
  await db.run(sql`alter table listener_secrets add constraint listener_secrets_pkey primary key (api_key_id)`)
  await db.run(sql`
    alter table listener_secrets add constraint listener_secrets_api_key_id_fkey foreign key (api_key_id) references api_keys (id)`)
  await db.run(
    sql`delete from schema_migrations where name in ('0075_sign_in.sql', '0076_invitations.sql', '0183_sign_in_mails.sql')`,
  )
  await db.run(sql`
    insert into accounts (id, email, accepted_at, created_at) values ('acc_1', 'one@example.com', now(), now()), ('acc_2', 'two@example.com', null, now())`)
  await db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_1', 'One', 'team', 'hobby', now())`,
  )
  await db.run(sql`
    insert into members (organisation_id, account_id, role, created_at) values ('org_1', 'acc_1', 'owner', now()), ('org_1', 'acc_2', 'member', now())`)
  expect(await migrate({ url })).toEqual(['0075_sign_in.sql', '0076_invitations.sql', '0183_sign_in_mails.sql'])
  expect(await migrate({ url })).toEqual([])
  const rows = await db.many(
    Row,
    sql`select account_id, accepted_at is not null as is_active, invited_email from members order by account_id`,
  )
  expect(rows).toEqual([
    { accountId: 'acc_1', isActive: true, invitedEmail: null },
    { accountId: 'acc_2', isActive: false, invitedEmail: 'two@example.com' },
  ])
})

const Row = z.object({ accountId: z.string(), isActive: z.boolean(), invitedEmail: z.string().nullable() })
