import { operation } from '../ports.ts'
import { Statistics, StatisticsQuery } from './schema.ts'
import { paymentStatistics } from './statistics.ts'

export const statisticsOperation = operation({
  id: 'payments.statistics',
  needs: { role: 'viewer', scope: 'read' },
  method: 'GET',
  path: '/payments/statistics',
  summary: 'Count payments per interval of time, with amounts, latency and reasons of failures.',
  query: StatisticsQuery,
  output: Statistics,
  run: (ctx, { query }) => paymentStatistics(ctx, query),
})
