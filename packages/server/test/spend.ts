import { type DevChain, fundNative } from '@purser/devnet'
import { networkByName, tokenBySymbol } from '@purser/protocol'
import { createTestClient, createWalletClient, erc20Abi, http, publicActions } from 'viem'

const somebody = '0x000000000000000000000000000000000000dEaD'

/** Moves USDC out of an account, as its owner may at any moment, also while payments of it are open. */
export async function spend(chain: DevChain, from: `0x${string}`, rawAmount: bigint): Promise<void> {
  const network = networkByName(chain.network)
  const token = network && tokenBySymbol(network, 'USDC')
  if (token === undefined) throw new Error(`${chain.network} has no USDC`)
  const transport = http(chain.rpcUrl)
  const node = createTestClient({ mode: 'anvil', transport }).extend(publicActions)
  await fundNative(chain, from, 10n ** 18n)
  await node.impersonateAccount({ address: from })
  const hash = await createWalletClient({ account: from, transport }).writeContract({
    chain: null,
    address: token.address,
    abi: erc20Abi,
    functionName: 'transfer',
    args: [somebody, rawAmount],
  })
  const receipt = await node.waitForTransactionReceipt({ hash, pollingInterval: 20 })
  await node.stopImpersonatingAccount({ address: from })
  if (receipt.status !== 'success') throw new Error('the transfer reverted')
}
