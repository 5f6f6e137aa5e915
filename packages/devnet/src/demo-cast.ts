import { type Address, formatAmount, isAddress, type NetworkName } from '@purser/protocol'
import { createPurser, type PaymentLog, type Purser } from '@purser/sdk'
import type { DevChain } from './chains.ts'
import type { Provider } from './demo-provider.ts'
import type { Dev } from './dev.ts'
import { tokenBalance } from './faucet.ts'
import { expectTrue } from './narrator.ts'
import { isRecord, rpc } from './rpc.ts'

/** One of the provider's wallets: the address that is paid, the chain and the token. */
export interface SellerWallet {
  readonly walletId: string
  readonly chain: DevChain
  readonly symbol: string
  readonly receiver: Address
}

/** The payers and sellers of the demo, and their networks. */
export interface Cast {
  readonly dev: Dev
  readonly provider: Provider
  /** The provider's client of the service. */
  readonly purser: Purser
  readonly onBase: SellerWallet
  readonly onTempo: SellerWallet
}

export interface Balances {
  readonly payer: bigint
  readonly receiver: bigint
}

export async function castOf(dev: Dev, provider: Provider): Promise<Cast> {
  const purser = createPurser({ apiKey: dev.apiKey, baseUrl: dev.baseUrl })
  const tillOf = async (walletId: string, network: NetworkName, symbol: string): Promise<SellerWallet> => {
    const { address } = await purser.wallets.byo.get(walletId)
    const chain = dev.runningChains.find((running) => running.network === network)
    if (chain === undefined || !isAddress(address)) throw new Error(`the demo needs ${network} and a wallet on it`)
    return { walletId, chain, symbol, receiver: address }
  }
  const [onBase, onTempo] = await Promise.all([
    tillOf(dev.walletId, 'base-sepolia', 'USDC'),
    tillOf(provider.tempoWalletId, 'tempo-moderato', 'pathUSD'),
  ])
  return { dev, provider, purser, onBase, onTempo }
}

/** The balances of payer and receiver in the seller's token, read from its chain. */
export async function balances({ dev }: Cast, { chain, symbol, receiver }: SellerWallet): Promise<Balances> {
  const [ofPayer, ofReceiver] = await Promise.all([
    tokenBalance(chain, symbol, dev.payer.address),
    tokenBalance(chain, symbol, receiver),
  ])
  return { payer: ofPayer, receiver: ofReceiver }
}

/** Returns the block of a transaction. Fails the step unless the chain has it and it succeeded. */
export async function blockOf({ chain }: SellerWallet, transaction: string | undefined): Promise<number> {
  expectTrue(transaction !== undefined && /^0x[0-9a-f]{64}$/.test(transaction), 'the answer names no transaction')
  const receipt = await rpc(chain.rpcUrl, 'eth_getTransactionReceipt', [transaction])
  expectTrue(isRecord(receipt) && receipt.status === '0x1', `${transaction} did not succeed on ${chain.network}`)
  return Number(receipt.blockNumber)
}

/** The payment log of a seller's wallet, newest first. */
export function logsOf({ purser }: Cast, { walletId }: SellerWallet): Promise<readonly PaymentLog[]> {
  return purser.payments.logs.list({ walletId }).toArray({ limit: 10 })
}

/** Formats an amount of the seller's token for people. */
export function inWords({ symbol }: SellerWallet, raw: bigint): string {
  return `${formatAmount(raw, 6)} ${symbol}`
}

export function sameText(one: unknown, other: string | undefined): boolean {
  return typeof one === 'string' && one.toLowerCase() === other?.toLowerCase()
}
