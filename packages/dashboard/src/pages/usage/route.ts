import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

export const usageRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/usage',
    component: lazyRouteComponent(() => import('./usage-page.tsx'), 'UsagePage'),
  }),
] as const
