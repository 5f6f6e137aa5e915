import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readAuditSearch } from './search.ts'

export const auditRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/audit-log',
    validateSearch: readAuditSearch,
    component: lazyRouteComponent(() => import('./audit-page.tsx'), 'AuditPage'),
  }),
] as const
