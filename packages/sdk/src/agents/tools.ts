import { mustCount, mustFunctions, mustOptions } from '../check.ts'
import type { Balance } from '../managed-wallets.ts'
import { discoverTool } from './discover.ts'
import type { PayingToolsOptions } from './options.ts'
import { payAndFetchTool } from './pay-and-fetch.ts'
import { failureResult } from './results.ts'
import type { AgentTool } from './tool.ts'

/**
 * Returns tools with which a model pays within limits that it cannot change: `pay_and_fetch`, and on request
 * `get_balance` and `discover`. Each has a name, a description, a JSON schema and `execute`, as every agent framework
 * needs them. Throws a `TypeError` for options that cannot work.
 *
 * A model may be deceived into fetching a private address. With `limits.hosts` the tools fetch these hosts only.
 * Without it they refuse IP addresses and local names, but a public name may still resolve to a private address.
 *
 * @example
 * import { createPayingTools } from '@purser/sdk/agents'
 * import { privateKeyToAccount } from 'viem/accounts'
 *
 * const signer = privateKeyToAccount('0x0000000000000000000000000000000000000000000000000000000000000001')
 * const [payAndFetch] = createPayingTools({ signer, limits: { perCall: '0.05', perDay: '5' } })
 * console.log(await payAndFetch.execute({ url: 'https://api.example.com/forecast' }))
 */
export function createPayingTools(options: PayingToolsOptions): readonly [AgentTool, ...AgentTool[]] {
  mustOptions(options, 'The first argument')
  const { charactersMax = 10_000, timeoutMs, balances, resources } = options
  mustCount('charactersMax', charactersMax, 100)
  mustCount('timeoutMs', timeoutMs, 1)
  mustFunctions({ balances, resources })
  const payAndFetch = payAndFetchTool(options, charactersMax)
  const others = [
    ...(balances === undefined ? [] : [balanceTool(balances, options.onFault)]),
    ...(resources === undefined ? [] : [discoverTool({ resources, charactersMax, onFault: options.onFault })]),
  ]
  return [payAndFetch, ...others]
}

function balanceTool(balances: () => Promise<readonly Balance[]>, onFault?: (error: unknown) => void): AgentTool {
  return {
    name: 'get_balance',
    description: 'Returns the balances of the wallet that pays, by chain and token.',
    inputSchema: { type: 'object', properties: {}, required: [], additionalProperties: true },
    execute: async () => {
      try {
        const listed = await balances()
        const shown = listed.map(({ chain, tokenSymbol, formattedBalance }) => ({
          chain,
          token: tokenSymbol,
          amount: formattedBalance,
        }))
        return JSON.stringify({ ok: true, balances: shown.slice(0, 100) })
      } catch (error) {
        return failureResult(error, onFault)
      }
    },
  }
}
