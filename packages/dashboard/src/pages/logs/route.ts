import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readLogsSearch } from './search.ts'

export const logsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/logs',
    validateSearch: readLogsSearch,
    component: lazyRouteComponent(() => import('./logs-page.tsx'), 'LogsPage'),
  }),
] as const
