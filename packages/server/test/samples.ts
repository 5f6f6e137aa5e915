import { encodeJsonBase64, networkByName, tokenBySymbol } from '@purser/protocol'
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
  readonly plog: string
  readonly key: string
  readonly acc: string
  readonly org: string
  readonly token: string
  readonly reg: string
  /** A session of another payment, and its token. */
  readonly sess: string
  readonly sessionToken: string
  /** An open vault, and a document and a file in it. */
  readonly vlt: string
  readonly doc: string
  readonly fil: string
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

/** A request of an operation: path parameters and body. */
export interface Sample {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly query?: string
  /** Replaces the body for an operation that takes a form. */
  readonly form?: Uint8Array<ArrayBuffer>
}

export const resource = 'https://api.example.com/weather'

let sampleNumber = 0

/** Makes one of each in the test environment of the organization. Each call makes new ones. */
export async function makeResources(world: World, owner: Org): Promise<Resources> {
  const key = owner.testKey
  const wallet = await world.wallet(owner)
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: wallet.id, resource }
  const verified = await world.call(key, 'POST', '/payments/verify', body)
  const [log] = (await world.call(key, 'GET', '/payments/logs?limit=1')).list
  const spare = await world.call(key, 'POST', '/organisations/current/api-keys', { name: 'spare', environment: 'test' })
  const member = await world.call(key, 'POST', '/organisations/current/members', {
    email: `viewer${++sampleNumber}@example.com`,
    role: 'viewer',
  })
  await world.call(key, 'POST', '/registry/snapshots', snapshotNumber(++sampleNumber))
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
const hookUrl = 'http://127.0.0.1:9/hook'

const bankAccount = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

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

type InVaults = 'vlt' | 'doc' | 'fil' | 'closing' | 'sealed'

async function makeVaults(world: World, key: string): Promise<Pick<Resources, InVaults>> {
  const make = async () => String((await world.call(key, 'POST', '/vaults', { description: 'Report' })).body.id)
  const [vlt, closing, sealed] = [await make(), await make(), await make()]
  const added = await world.call(key, 'POST', `/vaults/${vlt}/documents`, { name: 'Findings', data: { secret: vlt } })
  const file = await upload(world.base, { key, vaultId: vlt, body: aForm() })
  await world.call(key, 'POST', `/vaults/${sealed}/seal`, { summary: 'Done' })
  return { vlt, doc: String(added.body.id), fil: String(file.body.id), closing, sealed }
}

function aForm(): Uint8Array<ArrayBuffer> {
  return formOf({ filename: 'findings.csv', type: 'text/csv', content: 'a;b\n1;2\n' })
}

/** One valid request for every operation, by its id, with these resources. Unique values are new in each. */
export function samplesOf(ids: Resources): Readonly<Record<string, () => Sample>> {
  return {
    'payments.challenge': () => ({
      body: {
        walletId: ids.byw,
        resource,
        price: '0.01',
        description: 'Weather',
        mimeType: 'text/plain',
        digest: 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
        credentialHeader: 'Payment-Authorization',
        count: 2,
      },
    }),
    'payments.verify': () => ({
      body: {
        protocol: 'x402',
        credential: 'stub_payment_accepted',
        price: '0.01',
        walletId: ids.byw,
        resource,
        method: 'GET',
        description: 'Weather',
      },
    }),
    'payments.settle': () => ({ body: { paymentId: ids.pay, settlementToken: ids.token } }),
    'payments.delivered': () => ({ body: { paymentIds: [ids.pay] } }),
    'payments.redeem': () => ({
      body: { protocol: 'x402', credential: ids.redeemable, resource, method: 'GET' },
    }),
    'payments.refund': () => ({ params: { id: ids.refundable }, body: { fromWalletId: ids.mwt } }),
    'payments.refunds.list': () => ({ params: { id: ids.refundable } }),
    'payments.undelivered': () => ({ params: { id: ids.unserved }, body: { redemptionToken: 'redeeming' } }),
    'payments.redeemed': () => ({ params: { id: ids.redeeming }, body: { redemptionToken: 'redeeming' } }),
    'payments.get': () => ({ params: { id: ids.pay } }),
    'payments.statistics': () => ({ query: '?from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z&interval=hour' }),
    'payments.logs.list': () => ({}),
    'payments.logs.summary': () => ({}),
    'payments.logs.get': () => ({ params: { paymentLogId: ids.plog } }),
    'account.paymentLogs.list': () => ({}),
    'account.paymentLogs.summary': () => ({}),
    'account.paymentLogs.get': () => ({ params: { paymentLogId: ids.plog } }),
    'facilitator.verify': () => ({ body: facilitatorBody() }),
    'facilitator.settle': () => ({ body: facilitatorBody() }),
    'facilitator.supported': () => ({}),
    'facilitator.resources': () => ({}),
    'wallets.byo.create': () => ({
      body: {
        address: addressNumber(++sampleNumber),
        chain: 'base',
        supportedTokens: ['USDC'],
        name: 'Till',
        metadata: { shop: ['a', { b: 1 }] },
      },
    }),
    'wallets.byo.list': () => ({}),
    'wallets.byo.get': () => ({ params: { id: ids.byw } }),
    'wallets.byo.update': () => ({ params: { id: ids.byw }, body: { name: 'Till 2', metadata: { shop: 'b' } } }),
    'wallets.byo.delete': () => ({ params: { id: ids.byw } }),
    'withdrawals.bankAccounts.create': () => ({ body: bankAccount }),
    'withdrawals.bankAccounts.list': () => ({}),
    'withdrawals.bankAccounts.get': () => ({ params: { id: ids.bac } }),
    'withdrawals.bankAccounts.delete': () => ({ params: { id: ids.bac } }),
    'withdrawals.create': () => ({ body: withdrawalOf(ids) }),
    'withdrawals.list': () => ({}),
    'withdrawals.get': () => ({ params: { id: ids.wdr } }),
    'wallets.byo.transactions': () => ({ params: { id: ids.byw } }),
    'wallets.master.transactions': () => ({ params: { id: ids.mwt } }),
    'wallets.children.transactions': () => ({ params: { id: ids.mwt, cad: ids.cad } }),
    // Refused, since these worlds have no chain; a rescan that finds something is in test/deposits.
    'wallets.deposits.rescan': () => ({ body: { chain: 'base', txHash: `0x${'ab'.repeat(32)}` } }),
    // Refused, since these worlds have no faucet; one that sends is in test/stories/test-deposits.
    'test.deposits.create': () => ({ body: { walletId: ids.byw, token: 'USDC', amount: '1' } }),
    'wallets.byo.balances': () => ({ params: { id: ids.byw } }),
    'transfers.create': () => ({ body: transferOf(ids) }),
    'wallets.pay': () => ({ body: walletPaymentOf(ids) }),
    'approvals.list': () => ({}),
    'approvals.get': () => ({ params: { id: ids.apr } }),
    'approvals.approve': () => ({ params: { id: ids.apr } }),
    'approvals.refuse': () => ({ params: { id: ids.apr }, body: { reason: 'Unknown recipient.' } }),
    'approvals.cancel': () => ({ params: { id: ids.apr } }),
    'transfers.quote': () => ({ body: transferOf(ids) }),
    'transfers.list': () => ({}),
    'transfers.get': () => ({ params: { id: ids.wtx } }),
    'wallets.master.create': () => ({
      body: { name: 'Treasury', chain: 'base', supportedTokens: ['USDC'], metadata: { use: 'all' } },
    }),
    'wallets.master.list': () => ({}),
    'wallets.master.get': () => ({ params: { id: ids.mwt } }),
    'wallets.master.balances': () => ({ params: { id: ids.mwt } }),
    'wallets.master.update': () => ({
      params: { id: ids.mwt },
      body: {
        name: 'Treasury 2',
        metadata: { use: 'gas' },
        autoSweep: { token: 'USDC', minAmount: '5', everyMinutes: 30 },
      },
    }),
    'wallets.master.retire': () => ({ params: { id: ids.mwt } }),
    'wallets.master.restore': () => ({ params: { id: ids.mwt } }),
    'wallets.master.policy.get': () => ({ params: { id: ids.mwt } }),
    'wallets.master.policy.set': () => ({
      params: { id: ids.mwt },
      body: {
        operations: { transfer: { recipients: 'any' }, withdraw: { recipients: [ids.bac] } },
        tokens: { USDC: { perTransaction: '50', perHour: '100', perDay: '500', perMonth: '2500.5' } },
      },
    }),
    'wallets.master.sweep': () => ({
      params: { id: ids.mwt },
      body: { token: 'USDC', childAddressIds: [ids.cad], minAmount: '0.5' },
    }),
    'wallets.sweeps.list': () => ({ params: { id: ids.mwt } }),
    'wallets.sweeps.get': () => ({ params: { id: ids.mwt, sweepId: ids.swp } }),
    'wallets.children.create': () => ({
      params: { id: ids.mwt },
      body: { name: 'Customer', metadata: { customer: ['a', { b: 1 }] }, count: 2 },
    }),
    'wallets.children.list': () => ({ params: { id: ids.mwt } }),
    'wallets.children.get': () => ({ params: { id: ids.mwt, cad: ids.cad } }),
    'wallets.children.update': () => ({
      params: { id: ids.mwt, cad: ids.cad },
      body: { name: 'Customer 2', metadata: { customer: 'b' } },
    }),
    'wallets.children.balances': () => ({ params: { id: ids.mwt, cad: ids.cad } }),
    'wallets.legacy.create': () => ({ body: { coin: 'USDC' } }),
    'wallets.legacy.get': () => ({}),
    'wallets.legacy.balance': () => ({ query: '?coin=USDC' }),
    'wallets.legacy.history': () => ({}),
    'wallets.legacy.withdraw': () => ({ body: { to: addressNumber(7), amount: '1', coin: 'USDC' } }),
    'chains.list': () => ({}),
    'chains.tokens': () => ({ params: { chain: 'base' } }),
    'organisations.create': () => ({ body: { name: 'Another' } }),
    'organisations.current': () => ({}),
    'organisations.update': () => ({ body: { name: 'Renamed' } }),
    'organisations.auditLog': () => ({}),
    'organisations.members.list': () => ({}),
    'organisations.members.add': () => ({ body: { email: `somebody${++sampleNumber}@example.com`, role: 'member' } }),
    'organisations.members.update': () => ({ params: { accountId: ids.acc }, body: { role: 'member' } }),
    'organisations.members.remove': () => ({ params: { accountId: ids.acc } }),
    'organisations.apiKeys.create': () => ({ body: { name: 'one', environment: 'test' } }),
    'organisations.apiKeys.list': () => ({}),
    'organisations.apiKeys.revoke': () => ({ params: { keyId: ids.key } }),
    'organisations.apiKeys.createIn': () => ({ params: { orgId: ids.org }, body: { name: 'two' } }),
    'organisations.apiKeys.listIn': () => ({ params: { orgId: ids.org } }),
    'organisations.apiKeys.revokeIn': () => ({ params: { orgId: ids.org, keyId: ids.key } }),
    'account.get': () => ({}),
    'account.usage': () => ({}),
    'account.invitations.accept': () => ({ params: { id: ids.org } }),
    'account.invitations.decline': () => ({ params: { id: ids.org } }),
    'account.sessions.list': () => ({}),
    'account.sessions.end': () => ({ params: { id: 'ssn_01h455vb4pex5vsknk084sn02q' } }),
    'sessions.create': () => ({ body: { paymentId: ids.pay, expiresIn: 3_600 } }),
    'sessions.list': () => ({}),
    'sessions.get': () => ({ params: { sessionId: ids.sess } }),
    'sessions.verify': () => ({
      body: { sessionToken: ids.sessionToken, host: 'api.example.com', walletId: ids.byw, otherWalletIds: [ids.byw] },
    }),
    'vaults.create': () => ({ body: { description: 'Report', ttl: '2h', metadata: { job: [{ number: 7 }] } } }),
    'vaults.list': () => ({}),
    'vaults.quota': () => ({}),
    'vaults.get': () => ({ params: { id: ids.vlt } }),
    'vaults.update': () => ({ params: { id: ids.vlt }, body: { description: 'Report 2', metadata: { job: 8 } } }),
    'vaults.delete': () => ({ params: { id: ids.vlt } }),
    'vaults.documents.add': () => ({ params: { id: ids.vlt }, body: { name: 'Findings', data: { found: [1, null] } } }),
    'vaults.documents.get': () => ({ params: { id: ids.vlt, docId: ids.doc } }),
    'vaults.files.add': () => ({ params: { id: ids.vlt }, form: aForm() }),
    'vaults.files.get': () => ({ params: { id: ids.vlt, fileId: ids.fil } }),
    'vaults.files.delete': () => ({ params: { id: ids.vlt, fileId: ids.fil } }),
    'vaults.tokens.create': () => ({ params: { id: ids.vlt }, body: { kind: 'token', expiresIn: 600 } }),
    'vaults.emit': () => ({ params: { id: ids.vlt }, body: { event: 'progress', payload: { percent: 40 } } }),
    'vaults.extend': () => ({ params: { id: ids.vlt }, body: { ttl: '3h' } }),
    'vaults.persist': () => ({ params: { id: ids.closing } }),
    'vaults.seal': () => ({ params: { id: ids.closing }, body: { summary: 'Done' } }),
    'vaults.proof': () => ({ params: { id: ids.sealed } }),
    // A sealed vault publishes nothing more, so the stream ends.
    'vaults.events': () => ({ params: { id: ids.sealed } }),
    'webhooks.create': () => ({ body: { url: hookUrl, events: ['vault.sealed', 'payment.received'] } }),
    'webhooks.list': () => ({}),
    'webhooks.get': () => ({ params: { webhookId: ids.wh } }),
    'webhooks.update': () => ({
      params: { webhookId: ids.wh },
      body: { url: hookUrl, events: ['vault.sealed'], isActive: true },
    }),
    'webhooks.delete': () => ({ params: { webhookId: ids.wh } }),
    'webhooks.attempts.list': () => ({ params: { webhookId: ids.wh } }),
    'webhooks.replay': () => ({ params: { webhookId: ids.wh }, body: { deliveryId: ids.del } }),
    'webhooks.test': () => ({ params: { webhookId: ids.wh } }),
    'webhooks.rotateSecret': () => ({ params: { webhookId: ids.wh } }),
    'events.list': () => ({}),
    'events.get': () => ({ params: { eventId: ids.evt } }),
    'events.types': () => ({}),
    'events.trigger': () => ({ body: { type: 'vault.sealed' } }),
    'events.resend': () => ({ params: { eventId: ids.evt }, body: { webhookId: ids.wh } }),
    'events.listener': () => ({}),
    // Past events only, so the stream ends.
    'events.stream': () => ({ query: '?from=2026-01-01T00:00:00Z&follow=false' }),
    'billing.usage': () => ({}),
    'billing.plan': () => ({}),
    'billing.rebuildCache': () => ({}),
    'registry.snapshots.create': () => ({ body: { ...snapshotNumber(++sampleNumber), paymentLogId: ids.plog } }),
    'registry.routes.list': () => ({}),
    'registry.routes.get': () => ({ params: { id: ids.reg } }),
    'registry.routes.update': () => ({ params: { id: ids.reg }, body: { isPublic: true } }),
  }
}

function transferOf({ mwt }: Resources) {
  const toAddress = addressNumber(7)
  return { fromWalletId: mwt, fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '1', toAddress }
}

/** Pays an offer on the network of the test keys. */
function walletPaymentOf({ mwt }: Resources) {
  const network = networkByName('base-sepolia')
  const usdc = network && tokenBySymbol(network, 'USDC')
  const offer = { scheme: 'exact', network: network?.caip2, amount: '10000', asset: usdc?.address }
  const accepts = [{ ...offer, payTo: addressNumber(7), maxTimeoutSeconds: 60, extra: usdc?.eip712 }]
  const required = encodeJsonBase64({ x402Version: 2, resource: { url: 'https://api.example.com' }, accepts })
  return { fromWalletId: mwt, challenge: { status: 402, headers: { 'PAYMENT-REQUIRED': required } }, maxAmount: '0.05' }
}

function withdrawalOf({ mwt, bac }: Resources) {
  return { fromWalletId: mwt, token: 'USDC', chain: 'base', amount: '60', bankAccountId: bac, reference: 'Invoice 7' }
}

/** A snapshot of a separate route for each number. */
function snapshotNumber(number: number): Readonly<Record<string, unknown>> {
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

/** A payment as an x402 server sends it to a facilitator: well-formed, and on a network that these worlds do not serve. */
function facilitatorBody(): Readonly<Record<string, unknown>> {
  const accepted = {
    scheme: 'exact',
    network: 'eip155:84532',
    amount: '10000',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payTo: addressNumber(1),
    maxTimeoutSeconds: 300,
    extra: { name: 'USDC', version: '2' },
  }
  const authorization = {
    from: addressNumber(2),
    to: addressNumber(1),
    value: '10000',
    validAfter: '0',
    validBefore: '4102444800',
    nonce: `0x${'ab'.repeat(32)}`,
  }
  const payload = { signature: `0x${'cd'.repeat(65)}`, authorization }
  return {
    x402Version: 2,
    paymentPayload: { x402Version: 2, resource: { url: resource }, accepted, payload, extensions: {} },
    paymentRequirements: accepted,
  }
}

/** A distinct address for each number. */
export function addressNumber(number: number): string {
  return `0x${number.toString(16).padStart(40, 'b')}`
}
