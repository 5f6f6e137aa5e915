import { sql } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import { formOf, upload } from './files/uploads.ts'
import { makeRedemptions } from './redemption-samples.ts'
import type { Org, World } from './world.ts'

/** One of each kind of a tenant's resources, for requests to name. */
export interface Resources {
  readonly byw: string
  /** A managed wallet, and a child address of it. */
  readonly mwt: string
  readonly cad: string
  /** A sweep of that wallet. */
  readonly swp: string
  readonly pay: string
  /** The credential of a payment that can be redeemed now, and two payments with open redemptions. */
  readonly redeemable: string
  readonly redeeming: string
  readonly unserved: string
  /** A payment that can be refunded. */
  readonly refundable: string
  /** A payment that is void, and its token. */
  readonly voided: string
  readonly voidedToken: string
  readonly plog: string
  readonly key: string
  readonly acc: string
  readonly org: string
  readonly token: string
  readonly reg: string
  /** A request in the request log. */
  readonly req: string
  /** A session of another payment, and its token. */
  readonly sess: string
  readonly sessionToken: string
  /** An open vault, and a document and a file in it. */
  readonly vlt: string
  readonly doc: string
  readonly fil: string
  /** A token of the open vault. */
  readonly vat: string
  /** Vaults to be persisted and sealed, and one that is sealed. */
  readonly closing: string
  readonly sealed: string
  /** A webhook, a delivery to it, and its event. */
  readonly wh: string
  readonly del: string
  readonly evt: string
  /** A bank account, and a withdrawal to it. */
  readonly bac: string
  readonly wdr: string
  /** The legacy wallet: a tenant has one, so another call returns the same. */
  readonly legacy: string
  /** A transfer, made where there was a chain. */
  readonly wtx: string
  /** The approval that a transfer waits for; the same key requested it. */
  readonly apr: string
}

export const resource = 'https://api.example.com/weather'

let sampleNumber = 0

/** A number that no other sample has. */
export function nextNumber(): number {
  return ++sampleNumber
}

/** Makes one of each in the test environment of the organisation. Each call makes new ones. */
export async function makeResources(world: World, owner: Org): Promise<Resources> {
  const key = owner.testKey
  const wallet = await world.wallet(owner)
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: wallet.id, resource }
  const verified = await world.call(key, 'POST', '/payments/verify', body)
  const [log] = (await world.call(key, 'GET', '/payments/logs?limit=1')).list
  const spare = await world.call(key, 'POST', '/organisations/current/api-keys', { name: 'spare', environment: 'test' })
  const member = await world.call(key, 'POST', '/organisations/current/members', {
    email: `viewer${nextNumber()}@example.com`,
    role: 'viewer',
  })
  await world.call(key, 'POST', '/registry/snapshots', snapshotNumber(nextNumber()))
  const [route] = (await world.call(key, 'GET', '/registry/routes?limit=1')).list
  const vaults = await makeVaults(world, key)
  const session = await makeSession(world, key, body)
  const managed = await makeManaged(world, key)
  const legacy = String((await world.call(key, 'POST', '/wallets', {})).body.id)
  return {
    byw: wallet.id,
    ...managed,
    legacy,
    wtx: await makeTransfer(world, owner, managed.mwt),
    apr: await makeApproval(world, owner, managed.mwt),
    req: await makeRequest(world, owner),
    pay: String(verified.body.paymentId),
    ...(await makeRedemptions(world, key, body)),
    plog: String(log?.id),
    key: String(spare.body.id),
    acc: String(member.body.accountId),
    org: owner.id,
    token: String(verified.body.settlementToken),
    reg: String(route?.id),
    ...vaults,
    ...session,
    ...(await makeWebhook(world, key)),
    ...(await makeWithdrawal(world, owner, managed.mwt)),
  }
}

async function makeManaged(world: World, key: string): Promise<Pick<Resources, 'mwt' | 'cad' | 'swp'>> {
  const path = '/wallet-infra/master-wallets'
  const { id } = (await world.call(key, 'POST', path, { chain: 'base', supportedTokens: ['USDC'] })).body
  const child = await world.call(key, 'POST', `${path}/${id}/child-addresses`, { name: 'Till' })
  const swp = newId('swp', world.server.deps)
  // Inserted directly, since a sweep begins with a chain read, and these worlds have no chain.
  await world.database.db.run(sql`
    insert into sweeps (id, organisation_id, environment, master_wallet_id, chain, network, token, decimals, trigger, is_partial, status, created_at)
    select ${swp}, organisation_id, environment, id, chain, network, 'USDC', 6, 'request', false, 'sweeping', created_at
    from master_wallets where id = ${id}`)
  return { mwt: String(id), cad: String(child.body.id), swp }
}

async function makeTransfer({ database, server }: World, { id }: Org, walletId: string): Promise<string> {
  const transferId = newId('wtx', server.deps)
  const address = addressNumber(8)
  await database.db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at)
    values (${transferId}, ${id}, 'test', ${walletId}, ${address}, ${address}, 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC', 'USDC', 6,
      1000000, 'direct', 'USDC stays USDC.', 'pending', now())`)
  return transferId
}

async function makeApproval({ database, server }: World, { id, testKey }: Org, walletId: string): Promise<string> {
  const [apr, subject] = [newId('apr', server.deps), newId('wtx', server.deps)]
  await database.db.run(sql`
    insert into movement_approvals (id, organisation_id, environment, master_wallet_id, wallet_id, kind, operation, subject_id, chain, token,
      decimals, raw_amount, recipient, to_chain, to_token, approval_above, api_key_id, account_id, created_at, expires_at)
    select ${apr}, ${id}, 'test', ${walletId}, ${walletId}, 'transfer', 'transfer', ${subject}, 'base', 'USDC', 6, 1000000, ${addressNumber(8)},
      'base', 'USDC', '0.5', id, created_by, now(), now() + interval '1 day'
    from api_keys where last4 = ${testKey.slice(-4)} and organisation_id = ${id} and environment = 'test' limit 1`)
  return apr
}

async function makeRequest({ database, server }: World, { id }: Org): Promise<string> {
  const req = newId('req', server.deps)
  await database.db.run(sql`
    insert into request_log (organisation_id, environment, id, method, route, status, duration_ms, created_at)
    values (${id}, 'test', ${req}, 'GET', '/requests', 200, 3, now())`)
  return req
}

async function makeWithdrawal(world: World, owner: Org, walletId: string): Promise<Pick<Resources, 'bac' | 'wdr'>> {
  const bac = String((await world.call(owner.testKey, 'POST', '/wallet-infra/bank-accounts', bankAccount)).body.id)
  const wdr = newId('wdr', world.server.deps)
  // Inserted directly, since a withdrawal begins with a chain read, and these worlds have no chain.
  await world.database.db.run(sql`
    insert into withdrawals (id, organisation_id, environment, wallet_id, from_address, chain, network, token, decimals, raw_amount,
      bank_account_id, currency, status, partner, partner_account_id, created_at)
    values (${wdr}, ${owner.id}, 'test', ${walletId}, ${addressNumber(8)}, 'base', 'base-sepolia', 'USDC', 6, 60000000, ${bac}, 'GBP',
      'pending_conversion', 'sandbox', 'sandbox_1', now())`)
  return { bac, wdr }
}

/** Nothing listens there. */
export const hookUrl = 'http://127.0.0.1:9/hook'

export const bankAccount = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

async function makeWebhook(world: World, key: string): Promise<Pick<Resources, 'wh' | 'del' | 'evt'>> {
  const { id } = (await world.call(key, 'POST', '/webhooks', { url: hookUrl, events: ['vault.sealed'] })).body
  const tested = await world.call(key, 'POST', `/webhooks/${id}/test`)
  return { wh: String(id), del: String(tested.body.id), evt: String(tested.body.eventId) }
}

async function makeSession(
  world: World,
  key: string,
  payment: object,
): Promise<Pick<Resources, 'sess' | 'sessionToken'>> {
  const { paymentId } = (await world.call(key, 'POST', '/payments/verify', payment)).body
  const { sessionId, sessionToken } = (await world.call(key, 'POST', '/sessions', { paymentId })).body
  return { sess: String(sessionId), sessionToken: String(sessionToken) }
}

type InVaults = 'vlt' | 'doc' | 'fil' | 'vat' | 'closing' | 'sealed'

async function makeVaults(world: World, key: string): Promise<Pick<Resources, InVaults>> {
  const make = async () => String((await world.call(key, 'POST', '/vaults', { description: 'Report' })).body.id)
  const [vlt, closing, sealed] = [await make(), await make(), await make()]
  const added = await world.call(key, 'POST', `/vaults/${vlt}/documents`, { name: 'Findings', data: { secret: vlt } })
  const file = await upload(world.base, { key, vaultId: vlt, body: aForm() })
  const token = await world.call(key, 'POST', `/vaults/${vlt}/tokens`, {})
  await world.call(key, 'POST', `/vaults/${sealed}/seal`, { summary: 'Done' })
  return { vlt, vat: String(token.body.id), doc: String(added.body.id), fil: String(file.body.id), closing, sealed }
}

export function aForm(): Uint8Array<ArrayBuffer> {
  return formOf({ filename: 'findings.csv', type: 'text/csv', content: 'a;b\n1;2\n' })
}

/** A snapshot of a separate route for each number. */
export function snapshotNumber(number: number): Readonly<Record<string, unknown>> {
  return {
    host: 'api.example.com',
    method: 'POST',
    routePattern: `/cities/city${number}/:day`,
    headers: [{ name: 'accept-language', type: 'string', required: false, example: 'en' }],
    queryParams: [{ name: 'units', type: 'string', required: true, example: 'metric' }],
    bodyParams: [{ name: 'hours', type: 'number', required: true, example: 6 }],
    bodyContentType: 'application/json',
    amount: '0.01',
    protocol: 'x402',
  }
}

/** A distinct address for each number. */
export function addressNumber(number: number): string {
  return `0x${number.toString(16).padStart(40, 'b')}`
}
