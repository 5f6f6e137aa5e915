import { NotFoundError, type Purser, type Verification } from '@purser/sdk'

/** The route that a test payment is for. */
const resource = 'https://api.example.com/forecast'
const price = '0.01'

/**
 * Pays a wallet of the test environment 0.01 USDC by the stub credential, which the service settles without a chain. Throws when there is
 * no wallet to pay.
 */
export async function makeTestPayment(purser: Purser): Promise<Verification> {
  const wallets = await purser.wallets.byo.list({ limit: 100 }).page()
  const wallet =
    wallets.items.find(({ isActive }) => isActive) ?? (await purser.wallets.master.list({ limit: 1 }).page()).items[0]
  if (wallet === undefined)
    throw new NotFoundError('There is no wallet to pay. Add one under Wallets first.', {
      code: 'wallet-not-found',
      status: 404,
    })
  return purser.payments.verify({
    protocol: 'x402',
    credential: 'stub_payment_accepted',
    price,
    currency: 'USD',
    walletId: wallet.id,
    resource,
    method: 'GET',
    reportsDelivery: false,
  })
}
