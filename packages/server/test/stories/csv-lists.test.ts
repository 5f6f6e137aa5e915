import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import openApi from '../../../../openapi.json' with { type: 'json' }
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { memberOf, whyNotDeclaredAt } from '../declared.ts'
import { makeResources, type Resources, resource } from '../resources.ts'
import { aWorld, codeOf, type Org, parseAnswer, type World } from '../world.ts'

let world: World
let org: Org
let other: Org
let ids: Resources
let otherIds: Resources

/** Text that others write, and that a file of rows and commas must keep in one cell. */
const hostile = [
  '=HYPERLINK("https://evil.example","a")',
  '+1,2',
  '-2+3|cmd',
  '@SUM(A1)',
  '\ttab',
  '\rreturn',
  '"',
  'a\r\n=1,"b"',
]

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  other = await world.organisation()
  ids = await makeResources(world, org)
  otherIds = await makeResources(world, other)
  for (const owner of [
    { org, ids },
    { org: other, ids: otherIds },
  ]) {
    await fillLogs(owner.org, owner.ids.byw)
    await fillTransfers(owner.org, owner.ids.mwt)
    for (const walletId of [owner.ids.byw, owner.ids.mwt, owner.ids.cad, owner.ids.legacy])
      await fillTransactions(owner.org, walletId)
  }
})
afterAll(() => world?.stop())

/** The routes and methods of the payments are hostile text, and one amount has more digits than a float. */
async function fillLogs({ id, testKey }: Org, walletId: string): Promise<void> {
  for (const at of hostile.keys()) {
    const body = { protocol: 'x402', credential: `stub_payment_${at}`, price: '0.01', walletId, resource }
    expect((await world.call(testKey, 'POST', '/payments/verify', body)).status).toBe(200)
  }
  await world.database.db.run(sql`
    update payments set route = given.text, method = given.text, raw_amount = 123456789012345678901234567890 + given.at
    from (select p.id, row_number() over (order by p.id) as at from payments p where p.organisation_id = ${id}) as numbered
    join unnest(${hostile}::text[]) with ordinality as given (text, at) on given.at = numbered.at
    where payments.id = numbered.id`)
}

async function fillTransfers({ id }: Org, walletId: string): Promise<void> {
  for (const [at, text] of hostile.entries())
    await world.database.db.run(sql`
      insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
        from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at, reference, metadata)
      values (${newId('wtx', world.server.deps)}, ${id}, 'test', ${walletId}, '0xfrom', '0xto', 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC',
        'USDC', 18, ${`90071992547409931${at}`}::numeric, 'direct', ${text}, ${at < 3 ? 'failed' : 'confirmed'}, now(), ${text},
        ${JSON.stringify({ [text]: text })}::jsonb)`)
}

async function fillTransactions({ id }: Org, walletId: string): Promise<void> {
  for (const [at, text] of hostile.entries())
    await world.database.db.run(sql`
      insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token,
        token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at, aml_due_at, aml_status)
      values (${newId('wtx', world.server.deps)}, ${id}, 'test', ${walletId}, 'base-sepolia', 'base', ${`0x${walletId}${at}`}, ${at}, 'in', 'transfer',
        ${at < 3 ? 'pending' : 'confirmed'}, '0xtoken', ${text}, 18, ${`1${'0'.repeat(30)}${at}`}::numeric, '0xfrom', '0xto', ${at}, '0xblock',
        now(), now(), 'infinity', 'clear')`)
}

/** The lists that are also CSV, with the paths of an organisation's own. */
const lists: Readonly<Record<string, (of: Resources) => string>> = {
  'payments.logs.list': () => '/payments/logs',
  'account.paymentLogs.list': () => '/account/payment-logs',
  'transfers.list': () => '/wallet-infra/transfers',
  'wallets.byo.transactions': ({ byw }) => `/wallet-infra/byo-wallets/${byw}/transactions`,
  'wallets.master.transactions': ({ mwt }) => `/wallet-infra/master-wallets/${mwt}/transactions`,
  'wallets.children.transactions': ({ mwt, cad }) =>
    `/wallet-infra/master-wallets/${mwt}/child-addresses/${cad}/transactions`,
  'wallets.legacy.history': () => '/wallets/history',
}

interface Fetched {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

async function get(path: string, headers: Record<string, string>, key = org.testKey): Promise<Fetched> {
  const response = await fetch(world.base + path, { headers: { authorization: `Bearer ${key}`, ...headers } })
  const fetched = { status: response.status, headers: response.headers, text: await response.text() }
  expect(whyNotDeclaredAt({ method: 'GET', path }, fetched)).toBeUndefined()
  return fetched
}

type Row = Readonly<Record<string, string>>

interface CsvPage {
  readonly rows: readonly Row[]
  /** The path of the next page. */
  readonly next: string | undefined
}

/** A page of a list, read as any program that knows RFC 4180 reads it. */
async function csvAt(path: string, key = org.testKey): Promise<CsvPage> {
  const { status, headers, text } = await get(path, { accept: 'text/csv' }, key)
  expect([status, headers.get('content-type')], text).toEqual([200, 'text/csv; charset=utf-8; header=present'])
  const rows: Row[] = parse(text, { columns: true, record_delimiter: '\r\n' })
  return { rows, next: /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1] }
}

/** A member of the JSON list as the cell that it should be. */
function cellOf(value: unknown): string {
  if (value === null) return ''
  if (typeof value === 'object') return JSON.stringify(value)
  const text = String(value)
  if (typeof value !== 'string' || !hostile.includes(text)) return text
  // A part that begins after a line break would be a cell of its own where a spreadsheet separates cells at semicolons.
  const parts = text.replaceAll(/(?<=[;\t\r\n])(?=[=+\-@])/g, "'")
  return /^[=+\-@\t\r]/.test(parts) ? `'${parts}` : parts
}

test('the document names text/csv for the lists of payment logs, transactions and transfers, and for no other', () => {
  const named = Object.values(openApi.paths).flatMap((methods) =>
    Object.values(methods)
      .filter(({ responses }) => memberOf(responses, '200', 'content', 'text/csv') !== undefined)
      .map(({ operationId, responses }) => {
        expect(Object.keys(Object(memberOf(responses, '200', 'content')))).toEqual(['application/json', 'text/csv'])
        return operationId
      }),
  )
  expect(named.sort()).toEqual(Object.keys(lists).sort())
})

describe.each(Object.entries(lists))('%s', (_id, pathOf) => {
  test('has every row and member of the JSON list, whatever text others wrote', async () => {
    const path = `${pathOf(ids)}?limit=500`
    const json = (await world.call(org.testKey, 'GET', path)).list
    expect(json.length).toBeGreaterThanOrEqual(hostile.length)
    const { rows } = await csvAt(path)
    const expected = json.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cellOf(value)])),
    )
    expect(rows).toEqual(expected)
    // The texts are there, so they were tested.
    const texts = new Set(json.flatMap((row) => Object.values(row)))
    expect(hostile.filter((text) => !texts.has(text))).toEqual([])
  })

  test('is paged like the JSON list, with the row of names on each page', async () => {
    const all = (await csvAt(`${pathOf(ids)}?limit=500`)).rows
    const paged: Row[] = []
    let next: string | undefined = `${pathOf(ids)}?limit=3`
    while (next !== undefined) {
      const page: CsvPage = await csvAt(next)
      expect(page.rows.length).toBeLessThanOrEqual(3)
      paged.push(...page.rows)
      next = page.next
    }
    expect(paged).toEqual(all)
  })

  test('shows no row of another tenant or of the other environment', async () => {
    const own = (await csvAt(`${pathOf(ids)}?limit=500`)).rows
    const theirs = (await csvAt(`${pathOf(otherIds)}?limit=500`, other.testKey)).rows
    const ownIds = new Set(own.map(({ id }) => id))
    expect(theirs.length).toBeGreaterThanOrEqual(hostile.length)
    expect(theirs.filter(({ id }) => ownIds.has(id))).toEqual([])
    // A cursor of the other tenant leads to own rows only.
    const cursor = Buffer.from(String(theirs[0]?.id)).toString('base64url')
    const after = (await csvAt(`${pathOf(ids)}?limit=500&cursor=${cursor}`)).rows
    expect(after.filter(({ id }) => !ownIds.has(id))).toEqual([])
    const live = await get(pathOf(ids), { accept: 'text/csv' }, org.liveKey)
    const stranger = await get(pathOf(ids), { accept: 'text/csv' }, other.testKey)
    for (const response of [live, ...(pathOf(ids) === pathOf(otherIds) ? [] : [stranger])]) {
      if (response.status === 404) expect(response.headers.get('content-type')).toContain('application/problem+json')
      else expect(parse(response.text, { columns: true })).toEqual([])
    }
  })

  test('answers a refusal as a problem record', async () => {
    const refused = await get(`${pathOf(ids)}?limit=0`, { accept: 'text/csv' })
    const response = await parseAnswer(new Response(refused.text))
    expect([refused.status, codeOf(response)]).toEqual([422, 'validation-error'])
    expect(refused.headers.get('content-type')).toContain('application/problem+json')
    const unknown = await get(pathOf(ids), { accept: 'text/csv' }, 'svc_test_sk_none')
    expect([unknown.status, unknown.headers.get('content-type')]).toEqual([
      401,
      expect.stringContaining('application/problem+json'),
    ])
  })
})

test('filters apply to CSV as to JSON', async () => {
  const failed = (await csvAt('/wallet-infra/transfers?status=failed')).rows
  expect(new Set(failed.map(({ reference }) => reference))).toEqual(
    new Set(hostile.slice(0, 3).map((text) => `'${text}`)),
  )
  const logs = (await csvAt(`/payments/logs?route=${encodeURIComponent('"')}`)).rows
  expect(logs.map(({ route }) => route)).toEqual(['"'])
})

test('an amount has all its digits', async () => {
  const { rows } = await csvAt('/payments/logs?limit=500')
  expect(rows.map(({ amount }) => amount)).toContain('123456789012345678901234.567891')
  const transfers = (await csvAt('/wallet-infra/transfers')).rows
  expect(transfers.map(({ amount }) => amount)).toContain('0.900719925474099317')
})

test('an empty list is its row of names', async () => {
  const { text } = await get('/wallet-infra/transfers', { accept: 'text/csv' }, org.liveKey)
  expect(text).toMatch(/^id,fromWalletId,toAddress,txHash,[a-zA-Z,]+,createdAt,confirmedAt\r\n$/)
})

test('JSON is the answer unless CSV is preferred, and either says that it depends on Accept', async () => {
  const typeFor = async (accept: string): Promise<string | null> => {
    const { status, headers } = await get('/payments/logs', { accept })
    expect([status, headers.get('vary')]).toEqual([200, 'Accept'])
    const isCsv = headers.get('content-type')?.startsWith('text/csv') === true
    expect(headers.get('content-disposition')).toBe(isCsv ? 'attachment; filename="payment-logs.csv"' : null)
    return headers.get('content-type')
  }
  for (const accept of ['*/*', '', 'application/json', 'image/png', 'text/csv;q=0.1, application/json', 'text/csv;q=0'])
    expect(await typeFor(accept), accept).toBe('application/json; charset=utf-8')
  for (const accept of ['text/csv', 'text/*', 'text/csv;charset=utf-8', 'application/json;q=0.5, text/csv'])
    expect(await typeFor(accept), accept).toBe('text/csv; charset=utf-8; header=present')
  const names = ['/wallet-infra/transfers', `/wallet-infra/byo-wallets/${ids.byw}/transactions`]
  const saved = names.map(async (path) => (await get(path, { accept: 'text/csv' })).headers.get('content-disposition'))
  expect(await Promise.all(saved)).toEqual([
    'attachment; filename="transfers.csv"',
    'attachment; filename="wallet-transactions.csv"',
  ])
})

test('an answer to the dashboard depends on its origin too', async () => {
  const { origin } = new URL(world.config.dashboardUrl)
  const response = await fetch(`${world.base}/payments/logs`, {
    headers: { authorization: `Bearer ${org.testKey}`, accept: 'text/csv', origin },
  })
  expect(response.headers.get('vary')).toBe('Accept, Origin')
  expect(response.headers.get('access-control-allow-origin')).toBe(origin)
})

test('a list without CSV is JSON, whatever the client accepts', async () => {
  const { status, headers } = await get('/webhooks', { accept: 'text/csv' })
  expect([status, headers.get('content-type'), headers.get('vary')]).toEqual([
    200,
    'application/json; charset=utf-8',
    null,
  ])
})
