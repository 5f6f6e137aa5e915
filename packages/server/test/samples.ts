import { encodeJsonBase64, networkByName, tokenBySymbol } from '@purser/protocol'
import {
  addressNumber,
  aForm,
  bankAccount,
  hookUrl,
  nextNumber,
  type Resources,
  resource,
  snapshotNumber,
} from './resources.ts'

/** A request of an operation: path parameters and body. */
export interface Sample {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly query?: string
  /** Replaces the body for an operation that takes a form. */
  readonly form?: Uint8Array<ArrayBuffer>
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
    'payments.release': () => ({ params: { id: ids.voided }, body: { settlementToken: ids.voidedToken } }),
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
        address: addressNumber(nextNumber()),
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
    'test.payments.create': () => ({ body: { walletId: ids.byw } }),
    'test.clock.advance': () => ({ body: { advance: 1 } }),
    'wallets.byo.balances': () => ({ params: { id: ids.byw } }),
    'wallets.holds.summary': () => ({}),
    'transfers.create': () => ({ body: transferOf(ids) }),
    'wallets.pay': () => ({ body: walletPaymentOf(ids) }),
    'requests.list': () => ({}),
    'requests.get': () => ({ params: { requestId: ids.req } }),
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
    'organisations.delete': () => ({ params: { orgId: ids.org } }),
    'organisations.auditLog': () => ({}),
    'organisations.members.list': () => ({}),
    'organisations.members.add': () => ({ body: { email: `somebody${nextNumber()}@example.com`, role: 'member' } }),
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
    'vaults.tokens.list': () => ({ params: { id: ids.vlt } }),
    'vaults.tokens.revoke': () => ({ params: { id: ids.vlt, tokenId: ids.vat } }),
    'vaults.tokens.revokeAll': () => ({ params: { id: ids.vlt } }),
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
    'registry.snapshots.create': () => ({ body: { ...snapshotNumber(nextNumber()), paymentLogId: ids.plog } }),
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
