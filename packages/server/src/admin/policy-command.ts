import { z } from 'zod'
import { overridePolicy, PolicyDocument } from '../features/wallets/index.ts'
import { id } from '../platform/ids.ts'
import { command } from './command.ts'

/** A policy as JSON text, or `none`. */
const PolicyText = z
  .string()
  .transform((written, ctx) => {
    if (written === 'none') return undefined
    try {
      const document: unknown = JSON.parse(written)
      return document
    } catch {
      ctx.addIssue({ code: 'custom', message: 'must be a policy as JSON, or none' })
      return z.NEVER
    }
  })
  .pipe(PolicyDocument.optional())

export const setPolicy = command({
  name: 'set-policy',
  summary: 'Set or remove the spend policy of a managed wallet, looser ones included; an API key may only tighten it.',
  options: {
    wallet: 'id of the master wallet (mwt_…)',
    policy: 'the policy as JSON, in the form of PUT …/policy, or none',
  },
  schema: z.strictObject({ wallet: id('mwt'), policy: PolicyText }),
  async run(operator, { wallet, policy }) {
    const set = await overridePolicy(operator, wallet, policy)
    const result = policy === undefined ? 'has no spend policy: nothing is limited' : 'now has this spend policy'
    return { lines: [`${wallet}  ${result}`], json: set, exitCode: 0 }
  },
})
