import { must, mustKnow } from '../check.ts'
import { isRecord } from '../problem.ts'
import type { Paid } from './admission.ts'
import { attachPaid } from './attach.ts'
import { checkPayOptions, payOptions, walletOptions } from './check-options.ts'
import { admit } from './core.ts'
import type { PayOptions, RouteDefaults, WalletOptions } from './options.ts'
import type { OwnResponse } from './responses.ts'
import { createSeller } from './seller.ts'
import { headersOfCall, responseOf, resultOf, type ToolRefusal, withReceipt } from './tool-messages.ts'

export type { VerifiedPayment } from '../payments.ts'
export { paymentOf, vaultOf } from './attach.ts'
export type { Fault, Undelivered } from './faults.ts'
export type { PaymentProtocol, WalletOptions } from './options.ts'
export type { ToolRefusal } from './tool-messages.ts'
export type { PaidVault } from './vault.ts'

/** Options that only HTTP has. */
type HttpOnly = 'cors' | 'freeMethods' | 'credentialHeader' | 'acceptSessions' | 'sessionTtl' | 'mimeType'

const httpOnly: readonly string[] = [
  'cors',
  'freeMethods',
  'credentialHeader',
  'acceptSessions',
  'sessionTtl',
  'mimeType',
  'registry',
  'clientIp',
  'bindBody',
  'currency',
] satisfies (HttpOnly | 'registry' | keyof PayOptions<unknown>)[]

function withoutHttp(names: Readonly<Record<string, true>>): Readonly<Record<string, true>> {
  return Object.fromEntries(Object.entries(names).filter(([name]) => !httpOnly.includes(name)))
}

/** The wallet and the key of a server's paid tools. `publicUrl` is the address of the MCP server. */
export interface ToolWalletOptions extends Omit<WalletOptions, HttpOnly | 'registry' | 'publicUrl'> {
  readonly publicUrl: string
}

/** The price of a tool. */
export interface PaidToolOptions<A> extends Omit<RouteDefaults, HttpOnly> {
  /** The name under which the tool is registered. */
  readonly name: string
  /** Decimal USD as text, such as `'0.01'`, or a function of the arguments of the call. */
  readonly price: string | ((given: A) => string | Promise<string>)
}

/** The last argument of a tool's function in the official SDK: `_meta` is in `mcpReq` in version 2. */
interface CallContext {
  readonly _meta?: unknown
  readonly signal?: AbortSignal
  readonly mcpReq?: { readonly _meta?: unknown; readonly signal?: AbortSignal }
}

/** Sells a tool: gives the function to register with the server of the official MCP SDK. */
export type PaidTool = <A extends unknown[], R extends object>(
  options: PaidToolOptions<A[0]>,
  run: (...given: A) => R | Promise<R>,
) => (...given: A) => Promise<R | ToolRefusal>

/**
 * Returns the function that sells tools of an MCP server, over any transport. A call without a payment gets the offers of
 * x402 (`structuredContent`) and MPP (`_meta`); a call with one in its `_meta` is verified, runs the tool and is settled
 * before the result is returned. If the tool throws or its result is an error, nothing is charged.
 *
 * @example
 * import { McpServer } from '@modelcontextprotocol/server'
 * import { createPaidTool, paymentOf } from '@purser/sdk/mcp'
 * import { z } from 'zod'
 *
 * const paidTool = createPaidTool({
 *   apiKey: process.env.PURSER_API_KEY ?? '',
 *   baseUrl: 'https://pay.example.com',
 *   walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *   publicUrl: 'https://mcp.example.com/mcp',
 * })
 * const server = new McpServer({ name: 'weather', version: '1.0.0' })
 * server.registerTool(
 *   'forecast',
 *   { description: 'The weather of a city. Costs 0.01 USD.', inputSchema: z.object({ city: z.string() }) },
 *   paidTool({ name: 'forecast', price: '0.01' }, ({ city }, ctx) => ({
 *     content: [{ type: 'text' as const, text: `Clear in ${city}, paid by ${paymentOf(ctx)?.payer}` }],
 *   })),
 * )
 */
export function createPaidTool(options: ToolWalletOptions): PaidTool {
  mustKnow(options, withoutHttp(walletOptions))
  must(options.publicUrl !== undefined, 'publicUrl', undefined, 'Give the URL of your MCP server.')
  const seller = createSeller({ ...options, registry: false })
  return (tool, run) => {
    checkTool(tool)
    return async (...given) => {
      const context = contextOf(given)
      const headers = headersOfCall(context.meta)
      const admission = await admit(seller, payOptionsOf(tool), {
        method: 'POST',
        origin: options.publicUrl,
        target: `/tools/${encodeURIComponent(tool.name)}`,
        header: (name) => headers.get(name),
        own: given[0],
      })
      if (admission.kind === 'free') return run(...given)
      if (admission.kind === 'refused') {
        if (context.signal?.aborted === true) admission.undelivered?.()
        return refused(admission.response)
      }
      attachPaid(context.own, admission)
      return sell(admission, context.signal, () => run(...given))
    }
  }
}

function checkTool<A>(tool: PaidToolOptions<A>): void {
  mustKnow(tool, { name: true, ...withoutHttp(payOptions) })
  must(typeof tool.name === 'string' && tool.name !== '', 'name', tool.name, 'Give the name of the tool.')
  checkPayOptions(payOptionsOf(tool))
}

function payOptionsOf<A>({ name: _, ...tool }: PaidToolOptions<A>): PayOptions<A> {
  return { ...tool, mimeType: 'application/json', acceptSessions: false }
}

/** The context is the last argument, with or without arguments of the tool before it. */
function contextOf(given: readonly unknown[]) {
  const own = given.at(-1)
  const context: CallContext = isRecord(own) ? own : {}
  const meta = context.mcpReq === undefined ? context._meta : context.mcpReq._meta
  const signal = context.mcpReq?.signal ?? context.signal
  return { own: isRecord(own) ? own : context, meta: isRecord(meta) ? meta : undefined, signal }
}

/** Returns a refusal, or the result that the tool had already produced for this payment. */
function refused<R extends object>(response: OwnResponse): R | ToolRefusal {
  return resultOf(response) as R | ToolRefusal
}

/** Runs the tool, settles the payment, and then returns the result. */
async function sell<R extends object>(
  paid: Paid,
  signal: AbortSignal | undefined,
  run: () => R | Promise<R>,
): Promise<R | ToolRefusal> {
  const result = await ended(paid, run)
  if (Reflect.get(result, 'isError') === true) {
    paid.failed()
    return result
  }
  const response = responseOf(result)
  if ((response.body?.length ?? 0) > paid.bodyBytesMax) return refused(paid.tooLarge())
  const conclusion = await paid.conclude()
  if (conclusion.kind === 'withhold') {
    conclusion.keep?.(response)
    return refused(conclusion.response)
  }
  if (signal?.aborted === true) {
    conclusion.undelivered(response)
    return result
  }
  const headers = Object.fromEntries(conclusion.headers)
  conclusion.keep?.(responseOf(result, headers))
  conclusion.delivered()
  return withReceipt(result, new Map(conclusion.headers.map(([name, value]) => [name.toLowerCase(), value])))
}

async function ended<R>(paid: Paid, run: () => R | Promise<R>): Promise<R> {
  try {
    return await run()
  } catch (error) {
    paid.failed()
    throw error
  }
}
