import { setTimeout as pause } from 'node:timers/promises'
import { isHex } from '@purser/protocol'
import { type Purser, PurserError } from '@purser/sdk'
import type { DevRecord } from '../../devnet/src/dev-file.ts'
import { fundNative } from '../../devnet/src/faucet.ts'

const fundedMsMax = 60_000
const pollMs = 500

type MoneyOut = Readonly<Record<'transferId' | 'withdrawalId' | 'waitingTransferId' | 'approvalId', string>>

/** Registers a bank account, and sends money out of a wallet to an address and to it: at once what is small, and what is large asks a person. */
export async function moveMoneyOut(purser: Purser, dev: DevRecord, walletId: string): Promise<MoneyOut> {
  const account = await purser.withdrawals.bankAccounts.create({
    accountName: 'Acme Research and Forecasting Services Limited',
    currency: 'GBP',
    sortCode: '20-29-59',
    accountNumber: '63748472',
  })
  await purser.test.deposits.create({ walletId, token: 'USDC', amount: '300' })
  await giveGas(purser, dev, walletId)
  const transfer = (amount: string, reference: string) =>
    purser.transfers.create({
      fromWalletId: walletId,
      fromToken: 'USDC',
      toAddress: '0x9b1deb4d3b7d4bad9bdd2b0d7b3dcb6dabcdef01',
      toChain: 'base',
      toToken: 'USDC',
      amount,
      reference,
    })
  const withdraw = (amount: string, reference: string) => {
    const from = { fromWalletId: walletId, token: 'USDC', chain: 'base' } as const
    return purser.withdrawals.create({ ...from, amount, bankAccountId: account.id, reference })
  }
  const sent = await onceFunded(() => transfer('1.25', 'Supplier 11'))
  const paid = await onceFunded(() => withdraw('50', 'Payroll 10'))
  const waiting = await onceFunded(() => transfer('70', 'Supplier 12: two months of satellite pictures'))
  await onceFunded(() => withdraw('75.5', 'Payroll 11'))
  const ids = { transferId: sent.id, withdrawalId: paid.id, waitingTransferId: waiting.id }
  return { ...ids, approvalId: waiting.approval?.id ?? '' }
}

/** Gives a wallet the coin that pays for its transactions, as its owner does. */
async function giveGas(purser: Purser, dev: DevRecord, walletId: string): Promise<void> {
  const chain = dev.chains['base-sepolia']
  if (chain === undefined) throw new Error('the demo needs the chains')
  const { address } = await purser.wallets.master.get(walletId)
  if (!isHex(address)) throw new Error('an address is not hexadecimal')
  await fundNative({ network: 'base-sepolia', ...chain }, address, 10n ** 18n)
}

/** Repeats what a wallet refuses while its deposits are screened, for a bounded time. */
async function onceFunded<T>(send: () => Promise<T>): Promise<T> {
  const end = Date.now() + fundedMsMax
  while (true)
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof PurserError) || error.code !== 'insufficient-balance' || Date.now() > end) throw error
      await pause(pollMs)
    }
}

/** Sweeps the deposit of a child address once it can be moved, and makes another deposit there. Returns the sweep's id. */
export async function sweepOnce(
  purser: Purser,
  { walletId, childId }: Readonly<Record<'walletId' | 'childId', string>>,
): Promise<string> {
  const end = Date.now() + fundedMsMax
  while (Date.now() < end) {
    const { id, childCount } = await purser.wallets.master.sweep(walletId, { token: 'USDC', minAmount: '1' })
    if (childCount > 0) {
      await purser.test.deposits.create({ walletId: childId, token: 'USDC', amount: '3.75' })
      return id
    }
    await pause(pollMs)
  }
  throw new Error('the deposit of a child address cannot be swept')
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
