import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

export const keysRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/keys',
    component: lazyRouteComponent(() => import('./keys-page.tsx'), 'KeysPage'),
  }),
] as const
