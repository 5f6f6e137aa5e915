import { setTimeout as pause } from 'node:timers/promises'
import { type Purser, PurserError } from '@purser/sdk'

const fundedMsMax = 10_000
const pollMs = 500

/** Registers a bank account, and sends money out of a wallet to an address and to it, as far as the wallet's money is free by then. */
export async function moveMoneyOut(purser: Purser, walletId: string): Promise<void> {
  const account = await purser.withdrawals.bankAccounts.create({
    accountName: 'Acme Research and Forecasting Services Limited',
    currency: 'GBP',
    sortCode: '20-29-59',
    accountNumber: '63748472',
  })
  await purser.test.deposits.create({ walletId, token: 'USDC', amount: '100' })
  await onceFunded(() =>
    purser.transfers.create({
      fromWalletId: walletId,
      fromToken: 'USDC',
      toAddress: '0x9b1deb4d3b7d4bad9bdd2b0d7b3dcb6dabcdef01',
      toChain: 'base',
      toToken: 'USDC',
      amount: '1.25',
      reference: 'Supplier 11',
    }),
  )
  await onceFunded(() =>
    purser.withdrawals.create({
      fromWalletId: walletId,
      amount: '50',
      token: 'USDC',
      chain: 'base',
      bankAccountId: account.id,
      reference: 'Payroll 11',
    }),
  )
}

/** Repeats what a wallet refuses while its deposits are screened, for a bounded time. */
async function onceFunded(send: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + fundedMsMax
  while (Date.now() < end) {
    try {
      await send()
      return
    } catch (error) {
      if (!(error instanceof PurserError) || error.code !== 'insufficient-balance') throw error
      await pause(pollMs)
    }
  }
}

/** Reports two routes to the registry, and opens a session for a payment. */
export async function reportRoutes(purser: Purser, paymentId: string): Promise<void> {
  for (const [routePattern, amount] of [
    ['/forecast', '0.01'],
    ['/markets/{market}/quotes', '0.002'],
  ] as const)
    await purser.registry.snapshots.create({
      host: 'api.example.com',
      method: 'GET',
      routePattern,
      queryParams: [{ name: 'city', type: 'string', required: true, example: 'Zurich' }],
      amount,
      protocol: 'x402',
    })
  await purser.sessions.create({ paymentId })
}
