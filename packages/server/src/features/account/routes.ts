import { type Operation, operation } from '../../platform/operation.ts'
import { getUsage, Usage } from '../billing/index.ts'
import { getAccount } from './account.ts'
import { Account } from './schema.ts'

export const accountOperations: readonly Operation[] = [
  operation({
    id: 'account.get',
    method: 'GET',
    path: '/account',
    summary: 'Get the account that made the calling key.',
    output: Account,
    run: (ctx) => getAccount(ctx),
  }),
  operation({
    id: 'account.usage',
    method: 'GET',
    path: '/account/usage',
    summary: 'Get what is used and what the plan grants; the same as billing usage.',
    output: Usage,
    run: (ctx) => getUsage(ctx),
  }),
]
