import { operation } from '../ports.ts'
import { Statistics, StatisticsQuery } from './schema.ts'
import { paymentStatistics } from './statistics.ts'

export const statisticsOperation = operation({
  id: 'payments.statistics',
  needs: { role: 'viewer', scope: 'read' },
  method: 'GET',
  path: '/payments/statistics',
  summary: 'Count payments per interval of time, with amounts, latency and reasons of failures.',
  description: 'For charts: an entry for each interval, protocol, token and status that has payments.',
  query: StatisticsQuery,
  output: Statistics,
  run: (ctx, { query }) => paymentStatistics(ctx, query),
})
