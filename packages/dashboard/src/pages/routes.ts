import { accountRoutes } from './account/route.ts'
import { approvalsRoutes } from './approvals/route.ts'
import { auditRoutes } from './audit/route.ts'
import { bankAccountsRoutes } from './bank-accounts/route.ts'
import { eventsRoutes } from './events/route.ts'
import { homeRoutes } from './home/route.ts'
import { keysRoutes } from './keys/route.ts'
import { logsRoutes } from './logs/route.ts'
import { paymentsRoutes } from './payments/route.ts'
import { quickStartRoutes } from './quick-start/route.ts'
import { registryRoutes } from './registry/route.ts'
import { sessionsRoutes } from './sessions/route.ts'
import { settingsRoutes } from './settings/route.ts'
import { teamRoutes } from './team/route.ts'
import { transfersRoutes } from './transfers/route.ts'
import { usageRoutes } from './usage/route.ts'
import { vaultsRoutes } from './vaults/route.ts'
import { walletsRoutes } from './wallets/route.ts'
import { webhooksRoutes } from './webhooks/route.ts'
import { withdrawalsRoutes } from './withdrawals/route.ts'

/** The pages of every section: one line each. */
export const pageRoutes = [
  ...homeRoutes,
  ...paymentsRoutes,
  ...vaultsRoutes,
  ...registryRoutes,
  ...sessionsRoutes,
  ...walletsRoutes,
  ...transfersRoutes,
  ...withdrawalsRoutes,
  ...bankAccountsRoutes,
  ...quickStartRoutes,
  ...keysRoutes,
  ...webhooksRoutes,
  ...eventsRoutes,
  ...logsRoutes,
  ...teamRoutes,
  ...usageRoutes,
  ...auditRoutes,
  ...settingsRoutes,
  ...accountRoutes,
  ...approvalsRoutes,
] as const
