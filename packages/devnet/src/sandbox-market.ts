import { type Address, networkByName, zeroAddress } from '@purser/protocol'
import { decodeFunctionResult, encodeFunctionData, erc20Abi, parseAbi } from 'viem'
import { devAccount } from './chains.ts'
import { fundToken, type ReachableChain, sendFromDevAccount } from './faucet.ts'
import { sandboxBridgeAddress, sandboxPoolAddress } from './predeploys.ts'
import { rpc, rpcHex } from './rpc.ts'

const poolAbi = parseAbi([
  'function add(address tokenA, uint256 amountA, address tokenB, uint256 amountB) payable',
  'function reserves(address tokenA, address tokenB) view returns (uint256)',
])

/** 3,000 dollars for a coin, with enough liquidity that a demonstration's amounts hardly move the price. */
const coinWei = 1_000n * 10n ** 18n
const dollars = 3_000_000n

/**
 * Funds the sandbox of a local chain: a market of every token with the chain's coin (on Tempo of every token with the
 * first), and the bridge's balance of each token. A chain that has them is left alone.
 */
export async function fundSandbox(chain: ReachableChain): Promise<void> {
  const network = networkByName(chain.network)
  const tokens = network?.tokens ?? []
  const hasCoin = network?.nativeCoin !== null
  const [first] = tokens
  const base = hasCoin ? zeroAddress : first?.address
  if (base === undefined) return
  const others = tokens.filter(({ address }) => address !== base)
  for (const { symbol, address, decimals } of others) {
    if ((await reserveOf(chain, address, base)) > 0n) continue
    const units = 10n ** BigInt(decimals)
    await fundToken(chain, symbol, sandboxBridgeAddress, dollars * units)
    await addPair(chain, { symbol, address, rawAmount: dollars * units }, hasCoin ? undefined : first?.symbol)
  }
  if (!hasCoin && first !== undefined)
    await fundToken(chain, first.symbol, sandboxBridgeAddress, dollars * 10n ** BigInt(first.decimals))
  if (hasCoin) await rpc(chain.rpcUrl, 'anvil_setBalance', [sandboxBridgeAddress, `0x${coinWei.toString(16)}`])
}

type Added = { symbol: string; address: Address; rawAmount: bigint }

async function addPair(chain: ReachableChain, token: Added, baseSymbol: string | undefined): Promise<void> {
  await offer(chain, token)
  if (baseSymbol === undefined) {
    const args = [token.address, token.rawAmount, zeroAddress, coinWei] as const
    await sendFromDevAccount(
      chain,
      sandboxPoolAddress,
      encodeFunctionData({ abi: poolAbi, functionName: 'add', args }),
      coinWei,
    )
    return
  }
  const base = { symbol: baseSymbol, address: chain.tokens[baseSymbol] ?? zeroAddress, rawAmount: token.rawAmount }
  await offer(chain, base)
  const args = [token.address, token.rawAmount, base.address, base.rawAmount] as const
  await sendFromDevAccount(chain, sandboxPoolAddress, encodeFunctionData({ abi: poolAbi, functionName: 'add', args }))
}

async function offer(chain: ReachableChain, { symbol, address, rawAmount }: Added): Promise<void> {
  await fundToken(chain, symbol, devAccount.address, rawAmount)
  const args = [sandboxPoolAddress, rawAmount] as const
  await sendFromDevAccount(chain, address, encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args }))
}

async function reserveOf(chain: ReachableChain, token: Address, other: Address): Promise<bigint> {
  const data = encodeFunctionData({ abi: poolAbi, functionName: 'reserves', args: [token, other] })
  const response = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: sandboxPoolAddress, data }, 'latest'])
  return decodeFunctionResult({ abi: poolAbi, functionName: 'reserves', data: response })
}
