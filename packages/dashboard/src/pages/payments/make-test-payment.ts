import { NotFoundError, type Purser, PurserError } from '@purser/sdk'

/** The route that a test payment is for. */
const resource = 'https://api.example.com/forecast'
const price = '0.01'

export interface TestPayment {
  readonly paymentId: string
  readonly amount: string
  readonly coin: string
}

/** Error codes for which a stub payment is made instead: no faucet can pay the wallet on a chain. */
const withoutChain = new Set(['test-payments-off', 'chain-not-supported'])

/**
 * Pays a wallet of the test environment 0.01 USDC: real test money from the faucet, or, where there is none, the stub credential, which
 * the service settles without a chain. Throws when there is no wallet to pay.
 */
export async function makeTestPayment(purser: Purser): Promise<TestPayment> {
  const walletId = await walletToPay(purser)
  try {
    const { id, amount, token } = await purser.test.payments.create({ walletId, price })
    return { paymentId: id, amount, coin: token }
  } catch (error) {
    if (!(error instanceof PurserError && withoutChain.has(error.code))) throw error
  }
  const request = { protocol: 'x402', credential: 'stub_payment_accepted', price, currency: 'USD' } as const
  return purser.payments.verify({ ...request, walletId, resource, method: 'GET', reportsDelivery: false })
}

/** The wallet that test payments go to: one that signed authorizations can pay, if there is one. */
export async function walletToPay(purser: Purser): Promise<string> {
  const [own, managed] = await Promise.all([
    purser.wallets.byo.list({ limit: 100 }).page(),
    purser.wallets.master.list({ limit: 100 }).page(),
  ])
  const wallets = [...own.items.filter(({ isActive }) => isActive), ...managed.items]
  const wallet = wallets.find(({ chain }) => chain !== 'tempo') ?? wallets[0]
  if (wallet !== undefined) return wallet.id
  throw new NotFoundError('There is no wallet to pay. Add one under Wallets first.', {
    code: 'wallet-not-found',
    status: 404,
  })
}
