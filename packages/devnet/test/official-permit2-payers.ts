import { x402Client } from '@x402/core/client'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { toClientEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { UptoEvmScheme } from '@x402/evm/upto/client'
import { type Address, createPublicClient, createWalletClient, erc20Abi, type Hex, http, maxUint256 } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { type DevChain, fundNative, fundToken, permit2Address } from '../src/index.ts'

export const network = 'eip155:84532'

/** A payer with the official client, with funds and a Permit2 allowance. */
export interface Permit2Payer {
  readonly address: Address
  readonly account: PrivateKeyAccount
  readonly client: x402Client
  /** Pays these requirements as the official client does. */
  sign(requirements: PaymentRequirements, extensions?: Record<string, unknown>): Promise<PaymentPayload>
  /** Sends a transaction of the payer. */
  send(to: Address, data: Hex): Promise<Hex>
  approve(allowance: bigint): Promise<Hex>
}

export async function aPermit2Payer(
  chain: DevChain,
  { balance = 1_000_000n, allowance = maxUint256 }: { readonly balance?: bigint; readonly allowance?: bigint } = {},
): Promise<Permit2Payer> {
  const account = privateKeyToAccount(generatePrivateKey())
  const transport = http(chain.rpcUrl)
  const known = { ...baseSepolia, id: chain.chainId }
  const reader = createPublicClient({ chain: known, transport, pollingInterval: 50 })
  const wallet = createWalletClient({ account, chain: known, transport })
  const signer = toClientEvmSigner(account, reader)
  const client = new x402Client()
    .register(network, new ExactEvmScheme(signer))
    .register(network, new UptoEvmScheme(signer))
  const mined = async (sent: Promise<Hex>): Promise<Hex> =>
    (await reader.waitForTransactionReceipt({ hash: await sent })).transactionHash
  const address = usdcOf(chain)
  const payer: Permit2Payer = {
    address: account.address,
    account,
    client,
    sign: (requirements, extensions = {}) =>
      client.createPaymentPayload({ x402Version: 2, resource: { url: soldAt }, accepts: [requirements], extensions }),
    send: (to, data) => mined(wallet.sendTransaction({ to, data })),
    approve: (amount) =>
      mined(wallet.writeContract({ address, abi: erc20Abi, functionName: 'approve', args: [permit2Address, amount] })),
  }
  if (balance > 0n) await fundToken(chain, 'USDC', account.address, balance)
  await fundNative(chain, account.address, 10n ** 18n)
  if (allowance > 0n) await payer.approve(allowance)
  return payer
}

const soldAt = 'https://shop.example/report'

export interface Price {
  readonly scheme: 'exact' | 'upto'
  readonly amount: string
  readonly payTo: Address
  readonly facilitatorAddress: Address
}

/** Requirements as an official server writes them, for a Permit2 payment. */
export function requirementsOf(
  chain: DevChain,
  { scheme, amount, payTo, facilitatorAddress }: Price,
): PaymentRequirements {
  const extra = { name: 'USDC', version: '2', assetTransferMethod: 'permit2' }
  return {
    scheme,
    network,
    amount,
    asset: usdcOf(chain),
    payTo,
    maxTimeoutSeconds: 60,
    extra: scheme === 'upto' ? { ...extra, facilitatorAddress } : extra,
  }
}

export function usdcOf(chain: DevChain): Address {
  const usdc = chain.tokens.USDC
  if (usdc === undefined) throw new Error('the chain has no USDC')
  return usdc
}
