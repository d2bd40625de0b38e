## Made from charts/gmsa-webhook by UPDATE_SNAPSHOTS=1 cargo test --test chart; deploy-gmsa-webhook.sh fills it in.
## An object marked "when:" is for that kind of certificate only; the namespace, for one that the script made.
---
# when: namespace
apiVersion: v1
kind: Namespace
metadata:
  name: ${NAMESPACE}
  labels:
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    pod-security.kubernetes.io/enforce: restricted
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
spec:
  maxUnavailable: 1
  # A pod that is not ready serves no requests, so it does not block a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app: ${NAME}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
# Only the pods of the Deployment mount the token.
automountServiceAccountToken: false
---
# when: self-managed
# The webhook fills it in. The key "data" is absent, so that applying this again does not change it.
apiVersion: v1
kind: Secret
metadata:
  name: ${NAME}-tls
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
type: Opaque
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ${NAME}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
rules:
  - apiGroups: [windows.k8s.io]
    resources: [gmsacredentialspecs]
    verbs: [get, list, watch]
  - apiGroups: [authorization.k8s.io]
    resources: [localsubjectaccessreviews]
    verbs: [create]
  # Writes the CA into its own configurations, and again after others overwrite it.
  - apiGroups: [admissionregistration.k8s.io]
    resources: [mutatingwebhookconfigurations]
    resourceNames: ["${NAME}","zz-${NAME}"]
    verbs: [get, patch, watch]
  - apiGroups: [admissionregistration.k8s.io]
    resources: [validatingwebhookconfigurations]
    resourceNames: [${NAME}]
    verbs: [get, patch, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: ${NAME}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ${NAME}
subjects:
  - kind: ServiceAccount
    name: ${NAME}
    namespace: ${NAMESPACE}
---
# when: self-managed
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
rules:
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [${NAME}-tls]
    verbs: [get, watch, update]
---
# when: self-managed
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ${NAME}
subjects:
  - kind: ServiceAccount
    name: ${NAME}
    namespace: ${NAMESPACE}
---
apiVersion: v1
kind: Service
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
spec:
  ports:
    - name: https
      port: 443
      # A named port keeps old pods reachable while containerPort changes. At 443 it is a number: the pods of the Go webhook's chart
      # have no named port, and must stay reachable until they are replaced.
      targetPort: https
  selector:
    app: ${NAME}
---
# when: self-managed
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
spec:
  replicas: 2
  selector:
    matchLabels:
      app: ${NAME}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app: ${NAME}
        app.kubernetes.io/instance: ${NAME}
        app.kubernetes.io/name: gmsa-webhook
      annotations:
        kubectl.kubernetes.io/default-container: ${NAME}
    spec:
      serviceAccountName: ${NAME}
      automountServiceAccountToken: true
      enableServiceLinks: false
      os:
        name: linux
      nodeSelector:
        kubernetes.io/os: linux
      ${TOLERATIONS}
      topologySpreadConstraints:
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: ${NAME}
          matchLabelKeys: [pod-template-hash]
        - topologyKey: kubernetes.io/hostname
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: ${NAME}
          matchLabelKeys: [pod-template-hash]
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: ${NAME}
          image: "${IMAGE}"
          imagePullPolicy: IfNotPresent
          args:
            - serve
            - --self-managed-secret=${NAMESPACE}/${NAME}-tls
            - --self-managed-service=${NAME}.${NAMESPACE}
            - --webhook-configuration=mutating/${NAME}
            - --webhook-configuration=validating/${NAME}
            - --webhook-configuration=mutating/zz-${NAME}
          env:
            - name: HTTPS_PORT
              value: "10250"
            - name: ADMIN_LISTEN
              value: "[::]:9090"
            - name: LOG_FORMAT
              value: json
          ports:
            - name: https
              containerPort: 10250
            - name: admin
              containerPort: 9090
          livenessProbe:
            httpGet:
              path: /livez
              port: admin
            failureThreshold: 6
            periodSeconds: 10
            timeoutSeconds: 5
          readinessProbe:
            httpGet:
              path: /readyz
              port: admin
            failureThreshold: 2
            periodSeconds: 3
            timeoutSeconds: 2
          startupProbe:
            httpGet:
              path: /livez
              port: admin
            failureThreshold: 60
            periodSeconds: 1
          resources:
            limits:
              memory: 128Mi
            requests:
              cpu: 50m
              memory: 32Mi
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop:
              - ALL
            readOnlyRootFilesystem: true
            runAsNonRoot: true
---
# when: secret
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${NAME}
  namespace: ${NAMESPACE}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
spec:
  replicas: 2
  selector:
    matchLabels:
      app: ${NAME}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app: ${NAME}
        app.kubernetes.io/instance: ${NAME}
        app.kubernetes.io/name: gmsa-webhook
      annotations:
        kubectl.kubernetes.io/default-container: ${NAME}
    spec:
      serviceAccountName: ${NAME}
      automountServiceAccountToken: true
      enableServiceLinks: false
      os:
        name: linux
      nodeSelector:
        kubernetes.io/os: linux
      ${TOLERATIONS}
      topologySpreadConstraints:
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: ${NAME}
          matchLabelKeys: [pod-template-hash]
        - topologyKey: kubernetes.io/hostname
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: ${NAME}
          matchLabelKeys: [pod-template-hash]
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: ${NAME}
          image: "${IMAGE}"
          imagePullPolicy: IfNotPresent
          args:
            - serve
            - --publish-ca=/tls/ca.crt
            - --webhook-configuration=mutating/${NAME}
            - --webhook-configuration=validating/${NAME}
            - --webhook-configuration=mutating/zz-${NAME}
          env:
            - name: HTTPS_PORT
              value: "10250"
            - name: ADMIN_LISTEN
              value: "[::]:9090"
            - name: LOG_FORMAT
              value: json
            - name: TLS_CRT
              value: /tls/tls.crt
            - name: TLS_KEY
              value: /tls/tls.key
          ports:
            - name: https
              containerPort: 10250
            - name: admin
              containerPort: 9090
          livenessProbe:
            httpGet:
              path: /livez
              port: admin
            failureThreshold: 6
            periodSeconds: 10
            timeoutSeconds: 5
          readinessProbe:
            httpGet:
              path: /readyz
              port: admin
            failureThreshold: 2
            periodSeconds: 3
            timeoutSeconds: 2
          startupProbe:
            httpGet:
              path: /livez
              port: admin
            failureThreshold: 60
            periodSeconds: 1
          resources:
            limits:
              memory: 128Mi
            requests:
              cpu: 50m
              memory: 32Mi
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop:
              - ALL
            readOnlyRootFilesystem: true
            runAsNonRoot: true
          volumeMounts:
            - name: tls
              mountPath: /tls
              readOnly: true
      volumes:
        - name: tls
          secret:
            secretName: ${NAME}-cert
            items:
              - key: ca.crt
                path: ca.crt
              - key: tls.crt
                path: tls.crt
              - key: tls.key
                path: tls.key
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: ${NAME}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
  annotations:
    admissions.enforcer/disabled: "true"
webhooks:
  - name: admission-webhook.windows-gmsa.sigs.k8s.io
    clientConfig:
      service:
        name: ${NAME}
        namespace: ${NAMESPACE}
        port: 443
        path: /mutate
    rules:
      - operations: [CREATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods]
        scope: Namespaced
      - operations: [UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods/ephemeralcontainers]
        scope: Namespaced
    matchConditions:
      - name: uses-gmsa
        expression: |-
          [object, oldObject].exists(pod, pod != null &&
            ([dyn(pod.spec)] + (has(pod.spec.containers) && dyn(pod.spec.containers) != null ? pod.spec.containers : [])
              + (has(pod.spec.initContainers) ? pod.spec.initContainers : []) + (has(pod.spec.ephemeralContainers) ? pod.spec.ephemeralContainers : []))
              .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
                && (has(s.securityContext.windowsOptions.gmsaCredentialSpecName) || has(s.securityContext.windowsOptions.gmsaCredentialSpec))))
    failurePolicy: Fail
    matchPolicy: Equivalent
    reinvocationPolicy: IfNeeded
    sideEffects: None
    timeoutSeconds: 5
    admissionReviewVersions: [v1, v1beta1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: zz-${NAME}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
  annotations:
    admissions.enforcer/disabled: "true"
webhooks:
  - name: last.windows-gmsa.sigs.k8s.io
    clientConfig:
      service:
        name: ${NAME}
        namespace: ${NAMESPACE}
        port: 443
        path: /mutate
    rules:
      - operations: [CREATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods]
        scope: Namespaced
      - operations: [UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods/ephemeralcontainers]
        scope: Namespaced
    matchConditions:
      - name: has-name-without-contents
        expression: |-
          ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
            + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
            .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
              && has(s.securityContext.windowsOptions.gmsaCredentialSpecName) && !has(s.securityContext.windowsOptions.gmsaCredentialSpec))
    failurePolicy: Fail
    matchPolicy: Equivalent
    reinvocationPolicy: IfNeeded
    sideEffects: None
    timeoutSeconds: 5
    admissionReviewVersions: [v1, v1beta1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: ${NAME}
  labels:
    app.kubernetes.io/instance: ${NAME}
    app.kubernetes.io/managed-by: deploy-gmsa-webhook.sh
    app.kubernetes.io/name: gmsa-webhook
    app.kubernetes.io/version: 0.1.0
  annotations:
    admissions.enforcer/disabled: "true"
webhooks:
  - name: admission-webhook.windows-gmsa.sigs.k8s.io
    clientConfig:
      service:
        name: ${NAME}
        namespace: ${NAMESPACE}
        port: 443
        path: /validate
    rules:
      - operations: [CREATE, UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods]
        scope: Namespaced
      - operations: [UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods/ephemeralcontainers]
        scope: Namespaced
    matchConditions:
      - name: uses-gmsa
        expression: |-
          [object, oldObject].exists(pod, pod != null &&
            ([dyn(pod.spec)] + (has(pod.spec.containers) && dyn(pod.spec.containers) != null ? pod.spec.containers : [])
              + (has(pod.spec.initContainers) ? pod.spec.initContainers : []) + (has(pod.spec.ephemeralContainers) ? pod.spec.ephemeralContainers : []))
              .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
                && (has(s.securityContext.windowsOptions.gmsaCredentialSpecName) || has(s.securityContext.windowsOptions.gmsaCredentialSpec))))
      - name: spec-changes
        expression: |-
          request.operation == 'CREATE' || object.spec != oldObject.spec
    failurePolicy: Fail
    matchPolicy: Equivalent
    sideEffects: None
    timeoutSeconds: 5
    admissionReviewVersions: [v1, v1beta1]
  # Rendered with match conditions only: otherwise every workload of the cluster would be sent.
  - name: workloads.windows-gmsa.sigs.k8s.io
    clientConfig:
      service:
        name: ${NAME}
        namespace: ${NAMESPACE}
        port: 443
        path: /validate-workload
    rules:
      - operations: [CREATE, UPDATE]
        apiGroups: [apps]
        apiVersions: ["*"]
        resources: [deployments, statefulsets, daemonsets, replicasets]
        scope: Namespaced
      - operations: [CREATE, UPDATE]
        apiGroups: [batch]
        apiVersions: ["*"]
        resources: [jobs, cronjobs]
        scope: Namespaced
      - operations: [CREATE, UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [replicationcontrollers]
        scope: Namespaced
    matchConditions:
      - name: uses-gmsa
        expression: |-
          [has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec : object.spec]
            .exists(workload, has(workload.template) && ([workload.template.spec].exists(spec,
              ([dyn(spec)] + (has(spec.containers) && dyn(spec.containers) != null ? spec.containers : [])
                + (has(spec.initContainers) ? spec.initContainers : []) + (has(spec.ephemeralContainers) ? spec.ephemeralContainers : []))
                .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
                  && (has(s.securityContext.windowsOptions.gmsaCredentialSpecName) || has(s.securityContext.windowsOptions.gmsaCredentialSpec))))
              || has(workload.template.metadata) && (has(workload.template.metadata.annotations) && ['gmsa-webhook/tickets', 'gmsa-webhook/keytab'].exists(own, own in workload.template.metadata.annotations))))
      - name: has-no-controller
        expression: |-
          !(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller))
      - name: spec-changes
        expression: |-
          request.operation == 'CREATE' || object.spec != oldObject.spec
    failurePolicy: Ignore
    matchPolicy: Equivalent
    sideEffects: None
    timeoutSeconds: 2
    admissionReviewVersions: [v1, v1beta1]
  - name: credentialspecs.windows-gmsa.sigs.k8s.io
    clientConfig:
      service:
        name: ${NAME}
        namespace: ${NAMESPACE}
        port: 443
        path: /validate-credspec
    rules:
      # A DELETE is never refused, so strict, which fails closed, does not ask about it.
      - operations: [CREATE, UPDATE, DELETE]
        apiGroups: [windows.k8s.io]
        apiVersions: ["*"]
        resources: [gmsacredentialspecs]
        scope: Cluster
    failurePolicy: Ignore
    matchPolicy: Equivalent
    sideEffects: None
    timeoutSeconds: 2
    admissionReviewVersions: [v1, v1beta1]
