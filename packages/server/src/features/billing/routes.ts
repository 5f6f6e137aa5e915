import type { Operation } from '../../platform/operation.ts'
import { getPlan, getUsage, rebuildCache } from './billing.ts'
import { type Deps, operation } from './ports.ts'
import { PlanRecord, Rebuilt, Usage } from './schema.ts'

export const billingOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'billing.usage',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/billing/usage',
    summary: 'Get what is used and what the plan grants.',
    description: 'Each quota with what is used of it. Payments are counted by calendar month (UTC).',
    output: Usage,
    run: (ctx) => getUsage(ctx),
  }),
  operation({
    id: 'billing.plan',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/billing/plan',
    summary: 'Get the plan with all its limits.',
    description: 'Another plan is chosen in the dashboard or set by the operator.',
    output: PlanRecord,
    run: (ctx) => getPlan(ctx),
  }),
  operation({
    id: 'billing.rebuildCache',
    needs: { role: 'admin', scope: 'organisation' },
    method: 'POST',
    path: '/billing/rebuild-cache',
    summary: 'Recount usage from the records.',
    description: 'Corrects the counters that quotas are compared with. It changes nothing else.',
    output: Rebuilt,
    cost: () => 50,
    run: (ctx) => rebuildCache(ctx),
  }),
]
