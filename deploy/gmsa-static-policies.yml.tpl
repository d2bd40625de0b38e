## Made from charts/gmsa-webhook by UPDATE_SNAPSHOTS=1 cargo test --test chart; deploy-gmsa-webhook.sh fills it in.
## Policies for files of the control plane, which no API server takes as objects.
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}-guard.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
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
        ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
          + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
          .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
            && (has(s.securityContext.windowsOptions.gmsaCredentialSpecName) || has(s.securityContext.windowsOptions.gmsaCredentialSpec)))
          || (has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.projected) && has(v.projected.sources) && v.projected.sources.exists(s,
            has(s.serviceAccountToken) && has(s.serviceAccountToken.audience)
            && ['gmsa-tickets/', 'gmsa-keytab/'].exists(own, s.serviceAccountToken.audience.startsWith(own)))))
  variables:
    # An update can add ephemeral containers alone. The rest was judged when the pod was created.
    - name: slots
      expression: |-
        request.operation == 'CREATE' ?
          ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
            + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
          : object.spec.?ephemeralContainers.orValue([]).filter(e,
              !oldObject.spec.?ephemeralContainers.orValue([]).exists(old, old.name == e.name))
    - name: named
      expression: |-
        variables.slots.filter(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
    - name: serviceAccount
      expression: |-
        object.spec.?serviceAccountName.orValue('') == '' ? 'default' : object.spec.serviceAccountName
    # The audiences of all projected tokens. CEL makes one list of many only by way of a text; no name of a credential spec has a line's end.
    - name: audiences
      expression: |-
        object.spec.?volumes.orValue([]).map(v, v.?projected.?sources.orValue([])
          .map(s, s.?serviceAccountToken.?audience.orValue('')).join('\n')).join('\n').split('\n')
    # A right is a verb and the name of a credential spec. A token asks for it by its audience, injected or by hand.
    - name: ofTokens
      expression: |-
        variables.audiences.map(a, a.startsWith('gmsa-tickets/'), ['use', a.substring(13)])
          + variables.audiences.map(a, a.startsWith('gmsa-keytab/'), ['export', a.substring(12)])
    - name: added
      expression: |-
        variables.named.map(s, ['use', string(s.securityContext.windowsOptions.gmsaCredentialSpecName)])
          + (request.operation == 'CREATE' ? variables.ofTokens : [])
    # rights0 has all rights that the pod needs, rights1 has those that differ from rights0[0], and so on: the first items are the distinct rights.
    - name: rights0
      expression: |-
        ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
          + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
          .filter(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
          .map(s, ['use', string(s.securityContext.windowsOptions.gmsaCredentialSpecName)]) + variables.ofTokens
    - name: rights1
      expression: variables.rights0.filter(right, right != variables.rights0[0])
    - name: rights2
      expression: variables.rights1.filter(right, right != variables.rights1[0])
    - name: rights3
      expression: variables.rights2.filter(right, right != variables.rights2[0])
    - name: rights4
      expression: variables.rights3.filter(right, right != variables.rights3[0])
    - name: rights5
      expression: variables.rights4.filter(right, right != variables.rights4[0])
    - name: rights6
      expression: variables.rights5.filter(right, right != variables.rights5[0])
    - name: rights7
      expression: variables.rights6.filter(right, right != variables.rights6[0])
    - name: rights8
      expression: variables.rights7.filter(right, right != variables.rights7[0])
    - name: rights9
      expression: variables.rights8.filter(right, right != variables.rights8[0])
    - name: rights10
      expression: variables.rights9.filter(right, right != variables.rights9[0])
    - name: rights11
      expression: variables.rights10.filter(right, right != variables.rights10[0])
    - name: rights12
      expression: variables.rights11.filter(right, right != variables.rights11[0])
    - name: rights13
      expression: variables.rights12.filter(right, right != variables.rights12[0])
    - name: rights14
      expression: variables.rights13.filter(right, right != variables.rights13[0])
    - name: rights15
      expression: variables.rights14.filter(right, right != variables.rights14[0])
    - name: rights16
      expression: variables.rights15.filter(right, right != variables.rights15[0])
    - name: rights17
      expression: variables.rights16.filter(right, right != variables.rights16[0])
    - name: rights18
      expression: variables.rights17.filter(right, right != variables.rights17[0])
    - name: rights19
      expression: variables.rights18.filter(right, right != variables.rights18[0])
    - name: rights20
      expression: variables.rights19.filter(right, right != variables.rights19[0])
    - name: rights21
      expression: variables.rights20.filter(right, right != variables.rights20[0])
    - name: rights22
      expression: variables.rights21.filter(right, right != variables.rights21[0])
    - name: rights23
      expression: variables.rights22.filter(right, right != variables.rights22[0])
    - name: rights24
      expression: variables.rights23.filter(right, right != variables.rights23[0])
  validations:
    - expression: |-
        variables.slots.all(s, !s.?securityContext.?windowsOptions.?gmsaCredentialSpec.hasValue()
          || s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
      message: GMSA cred spec contents are set without the name of their cred spec
      reason: Invalid
    - expression: |-
        variables.named.all(s, s.securityContext.windowsOptions.?gmsaCredentialSpec.hasValue())
      message: a GMSA cred spec name has no contents, so the container would start without its identity; the mutating webhook did not run, or another one added the name after it
      reason: Invalid
    - expression: variables.rights24.size() == 0
      message: more than 24 different GMSA cred specs in one pod
      reason: Invalid
    # One validation for each right: an expression for all of them would exceed the cost limit.
    - expression: |-
        variables.rights0.size() == 0 || !(variables.rights0[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights0[0][1])
            .check(variables.rights0[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights0[0][0]
          + '` GMSA cred spec "' + variables.rights0[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights1.size() == 0 || !(variables.rights1[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights1[0][1])
            .check(variables.rights1[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights1[0][0]
          + '` GMSA cred spec "' + variables.rights1[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights2.size() == 0 || !(variables.rights2[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights2[0][1])
            .check(variables.rights2[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights2[0][0]
          + '` GMSA cred spec "' + variables.rights2[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights3.size() == 0 || !(variables.rights3[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights3[0][1])
            .check(variables.rights3[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights3[0][0]
          + '` GMSA cred spec "' + variables.rights3[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights4.size() == 0 || !(variables.rights4[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights4[0][1])
            .check(variables.rights4[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights4[0][0]
          + '` GMSA cred spec "' + variables.rights4[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights5.size() == 0 || !(variables.rights5[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights5[0][1])
            .check(variables.rights5[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights5[0][0]
          + '` GMSA cred spec "' + variables.rights5[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights6.size() == 0 || !(variables.rights6[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights6[0][1])
            .check(variables.rights6[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights6[0][0]
          + '` GMSA cred spec "' + variables.rights6[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights7.size() == 0 || !(variables.rights7[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights7[0][1])
            .check(variables.rights7[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights7[0][0]
          + '` GMSA cred spec "' + variables.rights7[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights8.size() == 0 || !(variables.rights8[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights8[0][1])
            .check(variables.rights8[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights8[0][0]
          + '` GMSA cred spec "' + variables.rights8[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights9.size() == 0 || !(variables.rights9[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights9[0][1])
            .check(variables.rights9[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights9[0][0]
          + '` GMSA cred spec "' + variables.rights9[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights10.size() == 0 || !(variables.rights10[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights10[0][1])
            .check(variables.rights10[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights10[0][0]
          + '` GMSA cred spec "' + variables.rights10[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights11.size() == 0 || !(variables.rights11[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights11[0][1])
            .check(variables.rights11[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights11[0][0]
          + '` GMSA cred spec "' + variables.rights11[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights12.size() == 0 || !(variables.rights12[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights12[0][1])
            .check(variables.rights12[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights12[0][0]
          + '` GMSA cred spec "' + variables.rights12[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights13.size() == 0 || !(variables.rights13[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights13[0][1])
            .check(variables.rights13[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights13[0][0]
          + '` GMSA cred spec "' + variables.rights13[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights14.size() == 0 || !(variables.rights14[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights14[0][1])
            .check(variables.rights14[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights14[0][0]
          + '` GMSA cred spec "' + variables.rights14[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights15.size() == 0 || !(variables.rights15[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights15[0][1])
            .check(variables.rights15[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights15[0][0]
          + '` GMSA cred spec "' + variables.rights15[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights16.size() == 0 || !(variables.rights16[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights16[0][1])
            .check(variables.rights16[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights16[0][0]
          + '` GMSA cred spec "' + variables.rights16[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights17.size() == 0 || !(variables.rights17[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights17[0][1])
            .check(variables.rights17[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights17[0][0]
          + '` GMSA cred spec "' + variables.rights17[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights18.size() == 0 || !(variables.rights18[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights18[0][1])
            .check(variables.rights18[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights18[0][0]
          + '` GMSA cred spec "' + variables.rights18[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights19.size() == 0 || !(variables.rights19[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights19[0][1])
            .check(variables.rights19[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights19[0][0]
          + '` GMSA cred spec "' + variables.rights19[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights20.size() == 0 || !(variables.rights20[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights20[0][1])
            .check(variables.rights20[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights20[0][0]
          + '` GMSA cred spec "' + variables.rights20[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights21.size() == 0 || !(variables.rights21[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights21[0][1])
            .check(variables.rights21[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights21[0][0]
          + '` GMSA cred spec "' + variables.rights21[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights22.size() == 0 || !(variables.rights22[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights22[0][1])
            .check(variables.rights22[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights22[0][0]
          + '` GMSA cred spec "' + variables.rights22[0][1] + '"'
      reason: Forbidden
    - expression: |-
        variables.rights23.size() == 0 || !(variables.rights23[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights23[0][1])
            .check(variables.rights23[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights23[0][0]
          + '` GMSA cred spec "' + variables.rights23[0][1] + '"'
      reason: Forbidden
---
# Only administrators change the webhook configurations. The publisher of the CA may write caBundle, and nothing else.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}-configurations.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - operations: [CREATE, UPDATE, DELETE]
        apiGroups: [admissionregistration.k8s.io]
        apiVersions: ["*"]
        resources:
          - mutatingwebhookconfigurations
          - validatingwebhookconfigurations
          - validatingadmissionpolicies
          - validatingadmissionpolicybindings
        scope: Cluster
  matchConditions:
    - name: of-this-release
      expression: |-
        (object == null ? oldObject : object).metadata.name in
          ["${NAME}","zz-${NAME}","${NAME}-guard","${NAME}-guard-trial","${NAME}-guard-opt-out","${NAME}-administrator","${NAME}-static-policies"]
    - name: not-by-an-administrator
      expression: |-
        (object == null ? oldObject : object).metadata.name == "${NAME}-static-policies"
          || !(request.userInfo.username in [${ADMIN_USERS}] || request.userInfo.?groups.orValue([]).exists(group, group in [${ADMIN_GROUPS}]))
  variables:
    - name: name
      expression: |-
        (object == null ? oldObject : object).metadata.name
    - name: publishes
      expression: request.userInfo.username in ["system:serviceaccount:${NAMESPACE}:${NAME}"]
  validations:
    # `kubectl gmsa doctor` uses this name to find out whether the policies are in force.
    - expression: variables.name != "${NAME}-static-policies"
      message: the static policies of the GMSA webhook ${NAME} are in force
      reason: Forbidden
    - expression: |-
        request.operation == 'UPDATE'
          && object.all(key, key in ["metadata","webhooks"] || (key in oldObject && object[key] == oldObject[key]))
          && oldObject.all(key, key in ["metadata","webhooks"] || key in object)
          && object.metadata.all(key, key in ["generation","managedFields","resourceVersion"] || (key in oldObject.metadata && object.metadata[key] == oldObject.metadata[key]))
          && oldObject.metadata.all(key, key in ["generation","managedFields","resourceVersion"] || key in object.metadata)
          && object.?webhooks.orValue([]).map(w, w.name) == oldObject.?webhooks.orValue([]).map(w, w.name)
          && object.?webhooks.orValue([]).all(new, oldObject.webhooks.exists(old, old.name == new.name
            && new.all(key, key in ["clientConfig"] || (key in old && new[key] == old[key]))
            && old.all(key, key in ["clientConfig"] || key in new)
            && new.clientConfig.all(key, key in ["caBundle"] || (key in old.clientConfig && new.clientConfig[key] == old.clientConfig[key]))
            && old.clientConfig.all(key, key in ["caBundle"] || key in new.clientConfig)
            && (variables.publishes || new.clientConfig.?caBundle == old.clientConfig.?caBundle)))
      messageExpression: |-
        'user "' + request.userInfo.username + '" may not '
          + {'CREATE': 'create', 'UPDATE': 'change', 'DELETE': 'delete'}[request.operation] + ' ' + request.resource.resource + '/' + variables.name
          + (request.operation == 'UPDATE' && variables.publishes ? ' except for its caBundle' : '')
          + ': only the administrators that the static policies of the control plane name may'
      reason: Forbidden
---
# when: self-managed
# The API server trusts every CA that this Secret names.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}-secret.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: ${NAMESPACE}
    resourceRules:
      - operations: [CREATE, UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [secrets]
        scope: Namespaced
  matchConditions:
    - name: of-this-release
      expression: object.metadata.name == "${NAME}-tls"
  validations:
    - expression: |-
        request.operation == 'UPDATE' && request.userInfo.username == "system:serviceaccount:${NAMESPACE}:${NAME}"
          || (request.userInfo.username in [${ADMIN_USERS}] || request.userInfo.?groups.orValue([]).exists(group, group in [${ADMIN_GROUPS}]))
      messageExpression: |-
        'user "' + request.userInfo.username + '" may not write the Secret ${NAME}-tls'
          + ': only the administrators that the static policies of the control plane name may'
      reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}-guard.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  policyName: ${NAME}-guard.static.k8s.io
  validationActions: ["Deny"]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}-configurations.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  policyName: ${NAME}-configurations.static.k8s.io
  validationActions: ["Deny"]
---
# when: self-managed
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}-secret.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  policyName: ${NAME}-secret.static.k8s.io
  validationActions: ["Deny"]
